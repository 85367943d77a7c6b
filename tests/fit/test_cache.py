"""The cache of compiled candidates: the same question starts nothing, and whatever a step read makes a new one."""

from __future__ import annotations

import os
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jax")

from fit.steps import compile_step, write_code, write_step

from tb_memplugin.fit.cache import SETTINGS, Cache
from tb_memplugin.fit.compile_task import Compiled, Limits
from tb_memplugin.fit.compiling import compiling
from tb_memplugin.fit.inputs import CLOCK_SECONDS, names_digest
from tb_memplugin.model.fit import Candidate, Outcome

BUILDS = """
import jax, os
def step(devices, batch=8):
    {size}
    return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((size, 64), "float32"),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cache").mkdir()  # before the first question: its name is beside the step
    monkeypatch.setenv("TB_MEMPLUGIN_FIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(compiling, "_run", run)


def write_old_step(folder: Path) -> str:
    """Write a step, and wait until it is older than a process that starts then. A newer one may have changed since."""
    step = write_step(folder)
    time.sleep(2 * CLOCK_SECONDS)
    return step


def test_the_same_question_starts_nothing(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = write_old_step(tmp_path)
    first = compile_step(step, batch=16)
    nothing_starts(monkeypatch)
    second = compile_step(step, batch=16)
    assert (first.is_cached, second.is_cached) == (False, True)
    assert second.files == first.files
    assert replace(second.outcome, seconds=0) == replace(first.outcome, seconds=0)


@pytest.mark.parametrize(
    ("size", "change"),
    [
        ("size = 512 * int(open({folder!r} + '/config.txt').read())", "file"),
        ("import helper; size = helper.size()", "module"),
        ("size = 512 * int(os.environ.get('FIT_SIZE', 1))", "variable"),
        ("size = 512 * int('FIT_SIZE' in os.environ) + 512", "variable"),
        ("size = 512 * len(os.listdir({folder!r} + '/many'))", "folder"),
        ("import pathlib; size = 512 * int(pathlib.Path({folder!r}, 'config.txt').read_text())", "file"),
        ("size = 512 + 512 * os.path.exists({folder!r} + '/flag')", "flag"),
        ("size = 512 + 512 * os.path.isfile({folder!r} + '/flag')", "flag"),
        ("import pathlib; size = 512 + 512 * pathlib.Path({folder!r}, 'flag').exists()", "flag"),
        ("size = 512 * int(dict(os.environ).get('FIT_SIZE', 1))", "variable"),
    ],
)  # fmt: skip
def test_whatever_the_step_read_makes_a_new_question(
    size: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.txt").write_text("1")
    (tmp_path / "helper.py").write_text("def size(): return 512")
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "one").touch()
    step = write_code(tmp_path, BUILDS.format(size=size.format(folder=str(tmp_path))))
    before = compile_step(step)
    assert compile_step(step).is_cached
    if change == "file":
        (tmp_path / "config.txt").write_text("4")
    elif change == "module":
        (tmp_path / "helper.py").write_text(
            "def size(): return 1024"
        )  # Python tells texts of one second by their length
    elif change == "flag":
        (tmp_path / "flag").touch()
    elif change == "variable":
        monkeypatch.setenv("FIT_SIZE", "3")
    else:
        (tmp_path / "many" / "two").touch()
    after = compile_step(step)
    assert not after.is_cached
    assert (after.outcome.reserved_bytes or 0) > (before.outcome.reserved_bytes or 0) > 0


def test_a_file_that_appears_in_the_current_folder_makes_a_new_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    step = write_code(tmp_path, BUILDS.format(size="size = 512 + 512 * os.path.exists('flag')"))
    before = compile_step(step)
    assert compile_step(step).is_cached
    Path("flag").touch()
    assert (compile_step(step).outcome.reserved_bytes or 0) > (before.outcome.reserved_bytes or 0)


def test_variables_of_terminals_and_sessions_ask_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = write_old_step(tmp_path)
    compile_step(step)
    for name in ("PWD", "TERM", "TERM_PROGRAM", "SSH_TTY", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.setenv(name, "another")
    nothing_starts(monkeypatch)
    assert compile_step(step).is_cached


def test_runs_and_bytecode_beside_a_step_ask_the_same_question(tmp_path: Path) -> None:
    before = names_digest(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "fit.json").touch()
    assert names_digest(str(tmp_path)) == before
    (tmp_path / "data").mkdir()
    assert names_digest(str(tmp_path)) != before
    assert names_digest(str(tmp_path / "missing")) is None


def test_a_step_finds_the_functions_of_python_as_they_are(tmp_path: Path) -> None:
    code = "import os, types; assert {type(os.stat), type(os.lstat)} == {types.BuiltinFunctionType}"
    found = compile_step(write_step(tmp_path, f"{code}\nassert type(os.environ).__iter__.__module__ == 'os'"))
    assert found.outcome.error == ""


def test_a_missing_file_that_appears_makes_a_new_question(tmp_path: Path) -> None:
    code = f"""
    try:
        size = int(open({str(tmp_path / "later.txt")!r}).read())
    except OSError:
        size = 512
    """.strip().replace("\n    ", "\n")
    step = write_code(tmp_path, BUILDS.format(size=code.replace("\n", "\n    ")))
    before = compile_step(step)
    (tmp_path / "later.txt").write_text("1024")
    assert (compile_step(step).outcome.reserved_bytes or 0) > (before.outcome.reserved_bytes or 0)


def test_a_program_with_the_same_lowering_is_not_compiled_again(tmp_path: Path) -> None:
    code = BUILDS.format(size="size = 512").replace("batch=8", "batch=8, unused=1")
    step = write_code(tmp_path, code)
    first, second = compile_step(step, unused=1), compile_step(step, unused=2)
    assert second.is_cached and second.files == first.files
    assert dict(second.outcome.candidate.knobs) == {"unused": 2}


def test_errors_of_the_step_and_timeouts_are_not_cached(tmp_path: Path, folder: Path) -> None:
    assert compile_step(write_step(tmp_path, "raise ValueError('no')")).outcome.error
    assert compile_step(write_step(tmp_path, "import time; time.sleep(100)"), Limits(seconds=1)).outcome.error
    assert not list(folder.glob("*/*"))


def test_damaged_entries_are_compiled_again(tmp_path: Path, folder: Path) -> None:
    step = write_old_step(tmp_path)
    first = compile_step(step)
    for damage in (b"", b"PK", os.urandom(500)):
        for path in folder.glob("*/*.program"):
            path.write_bytes(damage)
        again = compile_step(step)
        assert not again.is_cached and again.files == first.files
    for path in folder.glob("*/*.question"):
        path.write_bytes(b'{"key": 3}')
    assert compile_step(step).files == first.files
    assert compile_step(step).is_cached


def compiled(size: int) -> Compiled:
    return Compiled(Outcome(Candidate("a.py:step", "cpu:1"), reserved_bytes=size), {"program": os.urandom(size)})


def test_the_oldest_go_when_the_cache_is_full(tmp_path: Path) -> None:
    cache = Cache(tmp_path, most=10_000)
    for number in range(20):
        cache.put(f"{number:064}", compiled(2_000))
        os.utime(next(tmp_path.glob(f"00/{number:064}.program")), (number, number))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.program")) <= 10_000
    assert cache.has(f"{19:064}") and not cache.has(f"{3:064}")


def test_writers_at_the_same_time_leave_a_whole_entry(tmp_path: Path) -> None:
    cache, entries = Cache(tmp_path), [compiled(200_000) for _ in range(8)]
    threads = [threading.Thread(target=cache.put, args=("k" * 64, one)) for one in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = cache.get("k" * 64, Candidate("a.py:step", "cpu:1"))
    assert found is not None and found.files in [one.files for one in entries]
    assert not list(tmp_path.rglob("*.partial"))


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "below")
    cache.put("k" * 64, compiled(10))
    assert cache.get("k" * 64, Candidate("a.py:step", "cpu:1")) is None


@pytest.mark.parametrize("variables", [{"XDG_CACHE_HOME": "/x"}, {"TB_MEMPLUGIN_FIT_CACHE": "/x/tb_memplugin/fit"}])
def test_variables_choose_the_folder(variables: dict[str, str]) -> None:
    assert SETTINGS.folder(variables) == Path("/x/tb_memplugin/fit")
    assert "tb_memplugin" in str(SETTINGS.folder({}))


def test_an_entry_is_a_plain_archive(tmp_path: Path) -> None:
    Cache(tmp_path).put("k" * 64, compiled(10))
    assert set(zipfile.ZipFile(next(tmp_path.glob("kk/*"))).namelist()) == {"fit.json", "program"}


def planted(folder: Path, key: str, name: str, content: bytes) -> Cache:
    """Return a cache with an entry to which a file was added."""
    cache = Cache(folder)
    cache.put(key, compiled(10))
    with zipfile.ZipFile(folder / key[:2] / f"{key}.program", "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return cache


@pytest.mark.parametrize("name", ["../escaped.py", "/tmp/escaped.py", "a/../../escaped.py"])
def test_an_entry_that_leads_out_of_its_folder_is_missing(tmp_path: Path, name: str) -> None:
    assert planted(tmp_path, "k" * 64, "inside.txt", b"1").get("k" * 64, Candidate("s", "v5e")) is not None
    assert planted(tmp_path, "l" * 64, name, b"1").get("l" * 64, Candidate("s", "v5e")) is None


def test_an_entry_that_expands_too_much_is_missing(tmp_path: Path) -> None:
    assert planted(tmp_path, "k" * 64, "zeros", bytes(200 << 20)).get("k" * 64, Candidate("s", "v5e")) is None


def test_a_question_reads_no_file_outside_the_cache(tmp_path: Path) -> None:
    outside = Cache(tmp_path / "outside")
    outside.put("k" * 64, compiled(10))
    cache = Cache(tmp_path / "a" / "cache")
    (tmp_path / "a" / "cache").mkdir(parents=True)
    cache.answer("q" * 64, f"../outside/kk/{'k' * 64}", {"files": {}, "folders": {}})
    assert cache.find("q" * 64, Candidate("s", "v5e")) is None


def test_clearing_leaves_files_of_others(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.put("k" * 64, compiled(10))
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.program").write_text("")
    (tmp_path / "cache" / "ab").symlink_to(home)
    (tmp_path / "cache" / "kk" / "notes.txt").write_text("")
    cache.clear()
    assert (home / "thesis.program").exists() and (tmp_path / "cache" / "kk" / "notes.txt").exists()
    assert cache.content() == (0, 0)
