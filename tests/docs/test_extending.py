"""The worked examples of docs/extending.md: applied to a copy of the repository, and tested there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import REPOSITORY

PAGE = REPOSITORY / "docs" / "extending.md"
COPIED = ("docs", "benchmarks", "demo_logdir", "frontend", "tb_memplugin", "tests", "tools")
DIFF = re.compile(r"(?ms)^```diff\n(.*?)^```$")
SECONDS = 600


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository with every example in it, and the generated client."""
    folder = tmp_path_factory.mktemp("extended") / "repository"
    for name in COPIED:
        ignored = shutil.ignore_patterns("node_modules", "static", "__pycache__")
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    # mypy then reads again only what an example changes, and what imports it: a tenth of the time.
    if (cached := REPOSITORY / ".mypy_cache").is_dir():
        shutil.copytree(cached, folder / cached.name)
    (folder / "frontend" / "node_modules").symlink_to(REPOSITORY / "frontend" / "node_modules")
    for diff in DIFF.findall(PAGE.read_text()):
        done = subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for tool in ("tools.generate_client", "tools.generate_schemas"):
        run(folder, sys.executable, "-m", tool)
    return folder


def run(folder: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def new_files(pattern: str) -> list[str]:
    """Return the files that match and that examples add or change, each once."""
    return sorted(set(re.findall(rf"(?m)^\+\+\+ b/({pattern})$", PAGE.read_text())))


def test_python_examples_pass_their_tests(extended: Path) -> None:
    tests = new_files(r"tests/.*\.py")
    assert len(tests) == 7
    run(extended, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_python_examples_are_well_typed_and_formatted(extended: Path) -> None:
    files = new_files(r"(?:tests|tb_memplugin)/.*\.py")
    run(extended, sys.executable, "-m", "ruff", "check", *files)
    run(extended, sys.executable, "-m", "ruff", "format", "--check", *files)
    run(extended, sys.executable, "-m", "mypy", *files)


@pytest.mark.skipif(not (REPOSITORY / "frontend" / "node_modules").is_dir(), reason="needs `npm ci` in frontend/")
def test_page_examples_compile_and_pass_their_tests(extended: Path) -> None:
    (test,) = new_files(r"frontend/.*\.test\.ts")
    run(extended / "frontend", "npx", "tsc", "--noEmit")
    run(extended / "frontend", "npx", "vitest", "run", test.removeprefix("frontend/"))
