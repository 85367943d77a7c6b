"""Keys of the cache: the digest of a question, and that of a program with all that its compiler depends on."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tb_memplugin.fit.cache.inputs import PACKAGE, installed_folders, sha256

FORMAT = 1
MACHINE = (platform.machine(), os.cpu_count())  # users may share the folder between machines
# Variables that jax, the compilers or Python read by themselves, many of them while jax is imported.
OF_JAX = ("JAX_", "XLA_", "TPU_", "LIBTPU", "TF_", "CUDA_", "NVIDIA_")
OF_PYTHON = ("PYTHON", "LD_", "OMP_", "OPENBLAS_", "MKL_")


def compiler_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that jax and the compilers read by themselves."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith((*OF_JAX, *OF_PYTHON))}


def question_key(request: Mapping[str, Any]) -> str:
    """Return the digest of a request to compile: its values, and the versions of all that is installed."""
    asked = {name: value for name, value in request.items() if name != "environment"}
    return _digest(
        [FORMAT, sys.version, MACHINE, _stamp(), _installed(), asked, compiler_variables(request["environment"])]
    )


def program_key(lowered: Any, target: str, options: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """Return the digest of a lowered program and all that its compiler depends on.

    Source lines are part of a program: the page shows them.
    """
    import jax

    lowered = getattr(lowered, "lowered", lowered)  # in wrappers of Flax and Equinox
    inner = getattr(lowered, "_lowering", None)
    devices = [getattr(device, "id", None) for device in getattr(inner, "_device_list", None) or ()]
    more = [str(getattr(inner, name, None)) for name in ("_compiler_options_kvs", "_donated_invars", "_platforms")]
    config = sorted((str(name), str(value)) for name, value in getattr(jax.config, "values", {}).items())
    variables = compiler_variables(os.environ)
    return _digest(
        [
            FORMAT,
            MACHINE,
            _stamp(),
            _content(lowered),
            target,
            dict(options),
            dict(versions),
            devices,
            more,
            config,
            variables,
        ]
    )


def _content(lowered: Any) -> str:
    """Return the digest of StableHLO with its source lines."""
    buffer = io.BytesIO()
    try:
        lowered.compiler_ir("stablehlo").operation.write_bytecode(buffer)
    except (AttributeError, TypeError):
        return sha256(lowered.as_text().encode())
    return sha256(buffer.getbuffer())


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode())


@lru_cache(1)
def _stamp() -> str:
    """Return the digest of this package's version: of the sizes and times of its files, which developers change."""
    files = sorted(path for path in Path(PACKAGE).rglob("*") if path.suffix in (".py", ".so", ".pyd"))
    return _digest([(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _installed() -> list[str]:
    """Return the names of installed packages, which contain their versions."""
    found = []
    for folder in installed_folders():
        try:
            found += [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
    return sorted(found)
