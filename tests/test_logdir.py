"""Contents of a logdir, and files that must not be found in one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tb_memplugin import logdir
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.logdir import remote_files


def put(root: Path, path: str, content: bytes = b"x") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def names(root: Path) -> list[str]:
    return [run.name for run in logdir.find_runs(str(root))]


def test_runs_are_named_as_xprof_names_them_newest_first(tmp_path: Path) -> None:
    """Check that the newest file of a run counts, and that last names come first among equally old runs."""
    for path, seconds in {
        "plugins/profile/2026_01_01/a.xplane.pb": 30,
        "plugins/profile/2026_02_01/a.xplane.pb": 20,
        "dump/memory.prof": 10,
        "train/big/plugins/profile/2026_01_01/a.xplane.pb": 10,
        "train/big/plugins/profile/2026_01_01/b.xplane.pb": 40,
        "train/small/plugins/profile/2026_01_01/a.xplane.pb": 10,
    }.items():
        os.utime(put(tmp_path, path), (seconds, seconds))
    found = {run.name: run.modified_ns // 10**9 for run in logdir.find_runs(str(tmp_path))}
    assert list(found.items()) == [
        ("train/big/2026_01_01", 40),
        ("2026_01_01", 30),
        ("2026_02_01", 20),
        ("train/small/2026_01_01", 10),
        ("dump", 10),
    ]


def test_hosts_are_what_stands_before_the_extension(tmp_path: Path) -> None:
    for host in ("10.0.0.1_6003", "b"):
        put(tmp_path, f"plugins/profile/s/{host}.xplane.pb", b"123")
    [run] = logdir.find_runs(str(tmp_path))
    assert [(file.host, file.size) for file in run.files] == [("10.0.0.1_6003", 3), ("b", 3)]


def test_programs_beside_a_profile_are_copies_of_it(tmp_path: Path) -> None:
    put(tmp_path, "plugins/profile/both/a.xplane.pb")
    put(tmp_path, "plugins/profile/both/jit_f(1).hlo_proto.pb")
    put(tmp_path, "plugins/profile/bare/jit_f(1).hlo_proto.pb")
    put(tmp_path, "plugins/profile/none/NO_MODULE.hlo_proto.pb", b"")
    runs = {run.name: [Path(file.path).name for file in run.files] for run in logdir.find_runs(str(tmp_path))}
    assert runs == {"both": ["a.xplane.pb"], "bare": ["jit_f(1).hlo_proto.pb"]}


@pytest.mark.parametrize("inside", ["plugins", "plugins/profile", "plugins/profile/s"])
def test_a_folder_inside_the_layout_will_do(tmp_path: Path, inside: str) -> None:
    put(tmp_path, "plugins/profile/s/a.xplane.pb")
    assert names(tmp_path / inside) == ["s"]


def test_stamp_changes_with_the_file(tmp_path: Path) -> None:
    file = put(tmp_path, "plugins/profile/s/a.xplane.pb")
    [before] = logdir.find_runs(str(tmp_path))
    os.utime(file, ns=(1, 1))
    [after] = logdir.find_runs(str(tmp_path))
    assert before.files[0].stamp != after.files[0].stamp


def test_links_lead_nowhere_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "logs", tmp_path / "outside"
    secret = put(outside, "plugins/profile/s/secret.xplane.pb")
    inside = put(root, "plugins/profile/s/a.xplane.pb")
    (root / "linked").symlink_to(outside)
    (inside.parent / "out.xplane.pb").symlink_to(secret)
    (inside.parent / "in.xplane.pb").symlink_to(inside)
    (root / "cycle").symlink_to(root)
    [run] = logdir.find_runs(str(root))
    assert [file.host for file in run.files] == ["a", "in"]


@pytest.mark.parametrize("name", ["plugins/profile/s/a.xplane.pb", "plugins/profile/s", "plugins"])
def test_links_that_are_put_there_after_the_listing_lead_nowhere(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "logs", tmp_path / "outside"
    put(outside, "plugins/profile/s/a.xplane.pb")
    put(root, "plugins/profile/s/a.xplane.pb")
    [run] = logdir.find_runs(str(root))
    assert len(logdir.read_bytes(run.files[0])) > 0
    (root / name).rename(tmp_path / "kept")
    (root / name).symlink_to(outside / name)
    with pytest.raises(ReadError, match="a link leads out of the folder"):
        logdir.read_bytes(run.files[0])


def test_linked_folders_that_lead_outside_are_named(tmp_path: Path) -> None:
    root, outside = tmp_path / "logdir", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / "linked").symlink_to(outside)
    with pytest.raises(InputError, match=r"are not read: .*linked\. Give their targets as logdirs"):
        logdir.find_runs(str(root))
    for name in ("run", "again"):
        (root / name).mkdir()
    (root / "run" / "step.prof").write_bytes(b"x")
    (root / "again" / "latest").symlink_to(root / "run")
    catalog = Catalog(str(root))
    (run,) = catalog.runs()
    (note,) = catalog_source(catalog).runs.run(run.name).notes
    assert note.endswith(f"are not read: {root / 'linked'}. Give their targets as logdirs.")


def test_a_linked_logdir_is_the_users_choice(tmp_path: Path) -> None:
    put(tmp_path, "real/plugins/profile/s/a.xplane.pb")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(tmp_path / "link") == ["s"]


@pytest.mark.parametrize(
    ("path", "inside"), [("a", True), (".", True), ("../x", False), ("a/../../x", False), ("\0", False)]
)
def test_is_inside(tmp_path: Path, path: str, inside: bool) -> None:
    assert logdir.is_inside(str(tmp_path), f"{tmp_path}/{path}") is inside


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "null byte"])
def test_nothing_to_find_says_where_and_what_to_do(tmp_path: Path, kind: str) -> None:
    path = {"missing": tmp_path / "missing", "empty": tmp_path, "file": put(tmp_path, "f")}.get(kind, "a\0b")
    with pytest.raises(InputError) as caught:
        logdir.find_runs(str(path))
    assert caught.value.where == str(path)
    assert caught.value.remedy
    assert not logdir.has_runs(str(path))


def test_an_unreadable_folder_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "plugins/profile/s/a.xplane.pb")
    put(tmp_path, "closed/plugins/profile/s/a.xplane.pb")
    scandir = os.scandir

    def guarded(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)  # root ignores chmod
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert names(tmp_path) == ["s"]


def test_the_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "plugins/profile/s/a.xplane.pb")
    put(tmp_path, "a/b/c/d/e/plugins/profile/deep/a.xplane.pb")
    monkeypatch.setattr("tb_memplugin.logdir.runs.MAX_FOLDERS", 5)
    assert names(tmp_path) == ["s"]


def test_read_bytes(tmp_path: Path) -> None:
    full, empty = put(tmp_path, "f.xplane.pb", b"abc"), put(tmp_path, "e.xplane.pb", b"")
    assert bytes(logdir.read_bytes(logdir.host_file(str(full)))) == b"abc"
    assert bytes(logdir.read_bytes(logdir.host_file(str(empty)))) == b""
    gone = logdir.host_file(str(full))
    full.unlink()
    with pytest.raises(InputError, match="No such file"):
        logdir.read_bytes(gone)


def test_remote() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/logs/train/plugins/profile/s/h.xplane.pb", b"content")
    memory.pipe("/bucket/logs/train/plugins/profile/s/notes.txt", b"")
    [run] = logdir.find_runs("memory://bucket/logs")
    assert run.name == "train/s"
    [file] = run.files
    assert (file.host, file.size, bytes(logdir.read_bytes(file))) == ("h", 7, b"content")
    assert run.modified_ns == int(memory.created("/bucket/logs/train/plugins/profile/s/h.xplane.pb").timestamp() * 1e9)
    for wrong in ("memory://bucket/none", "nosuchprotocol://x"):
        with pytest.raises(InputError, match=wrong):
            logdir.find_runs(wrong)


SECONDS = 1_795_376_080
AT = datetime.fromtimestamp(SECONDS, UTC)


@pytest.mark.parametrize(
    ("info", "seconds"),
    [
        ({"mtime": SECONDS + 0.0, "created": 5.0}, SECONDS),
        ({"mtime": AT}, SECONDS),  # sftp
        ({"updated": AT.isoformat().replace("+00:00", "Z")}, SECONDS),  # Google Cloud Storage
        ({"LastModified": AT}, SECONDS),  # S3
        ({"last_modified": AT.replace(tzinfo=None)}, SECONDS),  # Azure
        ({"modificationTime": SECONDS * 1000}, SECONDS),  # WebHDFS
        ({"LastModified": "", "created": AT}, SECONDS),
        *(({"mtime": wrong}, 0) for wrong in ("yesterday", -1, float("nan"), float("inf"), 10**30, True, None, b"x")),
        ({}, 0),
    ],
)
def test_times_of_remote_stores(info: dict[str, object], seconds: int) -> None:
    assert remote_files.stored_modified_ns(info) == seconds * 10**9


def test_a_program_in_any_folder_is_found_but_not_beside_the_profile_that_contains_it(tmp_path: Path) -> None:
    for name in ("exp/xla/step.hlo.pb", "exp/old/deep/step.hlo_proto.pb.gz", "copy/h.xplane.pb", "copy/step.hlo.pb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert {run.name for run in logdir.find_runs(str(tmp_path))} == {"exp/xla", "exp/old/deep"}


def test_a_folder_in_a_session_is_searched_and_a_link_out_of_the_logdir_is_not(tmp_path: Path) -> None:
    session, outside = tmp_path / "logs" / "plugins" / "profile" / "today", tmp_path / "outside"
    for folder in (session / "xla", outside):
        folder.mkdir(parents=True)
        (folder / "step.hlo.pb").write_bytes(b"x")
    (session / "host.xplane.pb").write_bytes(b"x")
    (session / "linked").symlink_to(outside)
    (session / "xla" / "linked.hlo.pb").symlink_to(outside / "step.hlo.pb")
    (session / "xla" / "module_0001.jit_f.after_optimizations.hlo.pb").symlink_to(outside / "step.hlo.pb")
    runs = {run.name: [file.path for file in run.files] for run in logdir.find_runs(str(tmp_path / "logs"))}
    assert runs == {
        "today": [str(session / "host.xplane.pb")],
        "plugins/profile/today/xla": [str(session / "xla" / "step.hlo.pb")],
    }


def test_files_that_scripts_write_are_runs_of_their_folders_in_number_order(tmp_path: Path) -> None:
    for name in ("memory10.prof", "memory2.prof", "memory1.prof", "notes.txt", "module.hlo.pb"):
        (tmp_path / "leak" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "leak" / name).write_bytes(b"x")
    session = tmp_path / "plugins" / "profile" / "today"
    session.mkdir(parents=True)
    for name in ("host.xplane.pb", "module.hlo_proto.pb", "step3.prof"):
        (session / name).write_bytes(b"x")
    runs = {run.name: [file.host for file in run.files] for run in logdir.find_runs(str(tmp_path))}
    assert runs == {"leak": ["", "memory1", "memory2", "memory10"], "today": ["host", "step3"]}
    [own] = logdir.find_runs(str(tmp_path / "leak"))
    assert own.name == "leak"
    assert [file.host for file in own.files] == ["", "memory1", "memory2", "memory10"]
