"""The guard that fails tests which write into the checkout, and the copy of the demo that tests read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.checkout import Guard, demo_copy
from support.servers import DEMO, REPOSITORY


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    (tmp_path / "file").touch()
    return Guard(tmp_path)


def test_files_that_are_written_removed_or_renamed_are_named(guard: Guard, tmp_path: Path) -> None:
    (tmp_path / "file").read_bytes()
    assert guard.problems(compare=True) == []
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").rename(tmp_path / "folder" / "renamed")
    found = "\n".join(guard.problems(compare=False))
    assert f"os.mkdir: {tmp_path}/folder" in found
    assert f"os.rename: {tmp_path}/file" in found and f"created: {tmp_path}/folder/renamed" in found
    assert guard.problems(compare=True) == []


def test_so_are_those_of_other_processes(guard: Guard, tmp_path: Path) -> None:
    subprocess.run(["rm", str(tmp_path / "file")], check=True)
    assert guard.problems(compare=False) == [f"removed: {tmp_path}/file"]


def test_bytecode_and_caches_are_left_out(guard: Guard, tmp_path: Path) -> None:
    for name in ("__pycache__", ".pytest_cache"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    assert guard.problems(compare=True) == []


def test_a_tree_elsewhere_that_links_into_the_folder_may_be_removed(guard: Guard, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(tmp_path / "file")
    shutil.rmtree(elsewhere)  # by names relative to the folder's descriptor
    assert guard.problems(compare=True) == []


def test_the_demo_is_a_copy_of_the_repositorys_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert REPOSITORY not in DEMO.parents
    cache = tmp_path / "demo_logdir/run/plugins/profile/cpu/ALL_HOSTS.op_stats.pb"
    for path in (cache, cache.with_name("localhost.xplane.pb"), tmp_path / "demo_logdir/new_run/memory.prof"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(REPOSITORY / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.delenv("TB_MEMPLUGIN_TESTS_DEMO")
    copy = demo_copy(tmp_path)
    found = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert found == {"run/plugins/profile/cpu/localhost.xplane.pb", "new_run/memory.prof"}
