"""The bytecode that the processes of a test run share, so that none compiles what another one has compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from compileall import compile_dir
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import rewrite

# The modules whose assertions pytest rewrites, which takes ten times as long as to compile them.
_REWRITTEN = ("conftest.py", "test_*.py")
_DATA = re.compile(r"/tests/data/")


def compile_package(repository: Path, processes: int) -> None:
    """Compile what processes that tests start import: they write no bytecode, and each would compile it again."""
    compile_dir(repository / "tb_memplugin", quiet=2, workers=processes)


def compile_tests(tests: Path, processes: int) -> None:
    """Compile the tests, as pytest would in each worker."""
    compile_dir(tests, quiet=2, rx=_DATA, workers=processes)
    files = [file for pattern in _REWRITTEN for file in sorted(tests.rglob(pattern))]
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(_rewrite, [files[first::processes] for first in range(processes)]))


def _rewrite(files: Iterable[Path]) -> None:
    for file in files:
        cached = rewrite.get_cache_dir(file) / (file.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(file, cached) is None:
            cached.parent.mkdir(exist_ok=True)
            digest, code = rewrite._rewrite_test(file, None)  # type: ignore[arg-type]
            part = cached.with_name(f"{cached.name}.{os.getpid()}")
            with part.open("wb") as output:
                rewrite._write_pyc_fp(output, digest, code)
            part.replace(cached)
