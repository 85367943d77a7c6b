"""Compile a program of the corpus for an accelerator, in a process of its own.

    python -m programs.compile NAME TARGET FOLDER [KNOB=VALUE ...]

writes FOLDER/program.hlo.pb (XLA's dump, with buffer assignment), XLA's own reports, and truth.json. The memory of a
TPU program is assigned a few seconds into a compile; the process ends there, as the rest is code generation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs.targets import target_devices

from tb_memplugin.fit.compiling.child import ENVIRONMENT
from tb_memplugin.fit.compiling.compiling import is_assigned, programs_of

OPTIONS = {
    "xla_dump_hlo_as_proto": True,
    "xla_dump_hlo_as_text": True,
    "xla_gpu_autotune_level": 0,  # without a GPU it takes half of the time and chooses nothing
}


@dataclass(frozen=True)
class Compiled:
    """A compiled program: its HloProto, the truth about its arguments, and XLA's own report."""

    proto: bytes
    truth: dict[str, Any]
    folder: Path


def compile_case(name: str, target: str, folder: Path, **knobs: Any) -> Compiled:
    """Compile a program in a process of its own; raises RuntimeError with what the compiler printed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"{key}={json.dumps(value)}" for key, value in knobs.items()]
    child = subprocess.Popen(
        [sys.executable, "-m", "programs.compile", name, target, str(folder), *words],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[1:3]))},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    while child.poll() is None and not is_assigned(folder):
        time.sleep(0.1)
    if child.poll() is None:
        child.kill()
    text = child.communicate()[0].decode(errors="replace")
    dumps = programs_of(folder)
    if not dumps:
        raise RuntimeError(f"{name} for {target} did not compile:\n{text[-4000:]}")
    truth = json.loads((folder / "truth.json").read_text())
    return Compiled(dumps[-1].read_bytes(), truth, folder)


def describe(case: Any) -> dict[str, Any]:
    """Return the truth about each leaf of the arguments: path, role, shape, dtype and bytes per device."""
    import inspect

    import jax
    from jax.tree_util import keystr, tree_flatten_with_path

    names = list(inspect.signature(case.function).parameters)
    roles = jax.tree.leaves(
        jax.tree.map(lambda role, tree: jax.tree.map(lambda _: role, tree), tuple(case.roles), tuple(case.arguments))
    )
    leaves, _ = tree_flatten_with_path(tuple(case.arguments))
    found = []
    for (path, leaf), role in zip(leaves, roles, strict=True):
        local = leaf.sharding.shard_shape(leaf.shape) if leaf.sharding is not None else leaf.shape
        found.append(
            {
                "path": names[min(path[0].idx, len(names) - 1)] + keystr(path[1:]),
                "role": role,
                "shape": list(leaf.shape),
                "local_shape": list(local),
                "dtype": str(leaf.dtype),
                "replicas": leaf.sharding.num_devices * _size(local) // max(_size(leaf.shape), 1),
            }
        )
    return {"arguments": found}


def _size(shape: Any) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def main(name: str, target: str, folder: str, *words: str) -> None:
    from programs import corpus

    knobs = {key: json.loads(value) for key, _, value in (word.partition("=") for word in words)}
    import jax

    # Paths of this machine have no place in a stored program.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r".*/(?=tests/|site-packages/|lib/python)")
    case = corpus.PROGRAMS[name].build(target_devices(target), **knobs)
    (Path(folder) / "truth.json").write_text(json.dumps(describe(case), indent=1))
    lowered = case.function.lower(*case.arguments)
    lowered.compile({"xla_dump_to": folder} | OPTIONS)


if __name__ == "__main__":
    main(*sys.argv[1:])
