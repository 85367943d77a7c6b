"""The compiled modules, built with AddressSanitizer and UndefinedBehaviorSanitizer into a folder of their own.

    python -m fuzz.sanitizers [TESTS...]

builds them and runs tests against them, all of tests/native without any.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fuzz.trial import SANITIZED
from support.servers import REPOSITORY

FOLDER = REPOSITORY / "build" / "sanitized"
# Python itself leaks at its end. Its allocator would hide the ends of blocks from the sanitizer.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
    "PYTHONMALLOC": "malloc",
    SANITIZED: "1",
}


def build() -> Path:
    """Copy the package, and compile its modules with sanitizers. Return the folder to import it from."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    skipped = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(REPOSITORY / "tb_memplugin", FOLDER / "tb_memplugin", ignore=skipped, dirs_exist_ok=True)
    setup = REPOSITORY / "tests" / "fuzz" / "sanitized_setup.py"
    command = [sys.executable, str(setup), "-q", "build_ext", "--inplace", "--parallel", "2"]
    subprocess.run(command, cwd=FOLDER, check=True)
    return FOLDER


def environment() -> Mapping[str, str]:
    """Return the environment of processes that use the sanitized modules."""
    libraries = [_library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    return {**OPTIONS, "LD_PRELOAD": " ".join(libraries), "PYTHONPATH": str(FOLDER)}


def _library(name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return str(Path(found.stdout.strip()).resolve())


def main(tests: list[str]) -> int:
    folder = build()
    paths = os.pathsep.join([str(folder), str(REPOSITORY), str(REPOSITORY / "tests")])
    # -P: the package of the working folder, which has no sanitizers, would come first. The profile has no deadlines.
    command = [sys.executable, "-P", "-m", "pytest", "-q", "--hypothesis-profile=ci", *(tests or ["tests/native"])]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **environment(), "PYTHONPATH": paths}, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
