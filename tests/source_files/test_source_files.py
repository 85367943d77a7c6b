"""Source files: which file a frame's path names, and that nothing outside the roots is read."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.source_files import LINES_AROUND, MAX_FILE_BYTES, MAX_LINE, VARIABLE, SourceFiles, checked_roots

CODE = "".join(f"line {number}\n" for number in range(1, 21))
SECRET = "TOKEN = 'secret'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with code, and secrets in and beside it."""
    for path in ("proj/train.py", "proj/src/model.py", "proj/other/model.py", "proj/jax/core.py", "proj/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(CODE)
    for path in ("outside.py", "project.py", "proj/.env", "proj/.git/config.py", "proj/.hidden.py", "proj/key.pem"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(SECRET)
    return Path(os.path.realpath(tmp_path / "proj"))


def found(root: Path, path: str, line: int = 1) -> str | None:
    around = SourceFiles([str(root)]).around(path, line)
    return None if around is None else around.path


def test_the_lines_around_a_frame_are_read(root: Path) -> None:
    around = SourceFiles([str(root)]).around("/home/somebody/proj/train.py", 10)
    assert around is not None
    assert (around.path, around.file, around.first) == ("train.py", str(root / "train.py"), 10 - LINES_AROUND)
    assert around.lines == tuple(f"line {n}" for n in range(10 - LINES_AROUND, 10 + LINES_AROUND + 1))
    assert SourceFiles([str(root)]).around("train.py", 20) is not None
    for line in (0, -1, 21, 1 << 60):
        assert SourceFiles([str(root)]).around("train.py", line) is None


def test_the_longest_common_end_of_the_path_decides(root: Path, tmp_path: Path) -> None:
    assert found(root, "/app/src/model.py") == "src/model.py"
    assert found(root, "C:\\work\\other\\model.py") == "other/model.py"
    assert found(root, str(root / "src" / "model.py")) == "src/model.py"
    assert found(root, "model.py") is None
    second = tmp_path / "second"
    (second / "deep" / "src").mkdir(parents=True)
    (second / "deep" / "src" / "model.py").write_text("other\n")
    around = SourceFiles([str(root), os.path.realpath(second)]).around("/app/deep/src/model.py", 1)
    assert around is not None and around.lines == ("other",)


def test_a_file_of_a_library_is_not_a_file_of_the_user_with_its_name(root: Path) -> None:
    assert found(root, "/usr/lib/python3.11/site-packages/jax/core.py") == "jax/core.py"
    assert found(root, "/usr/lib/python3.11/site-packages/flax/train.py") is None
    assert found(root, "/usr/lib/python3.11/train.py") is None
    assert found(root, "/any/package/__init__.py") is None


@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "src/../../outside.py",
        "/app/../outside.py",
        "..\\outside.py",
        "/../../../../../../etc/passwd",
        "/etc/passwd",
        ".env",
        "/x/.env",
        ".git/config.py",
        ".hidden.py",
        "key.pem",
        "train.py\0",
        "train.py\n",
        "train.py/",
        "src",
        "",
        "/",
        ".",
        "..",
        "~/outside.py",
        "file:///etc/passwd",
        "\\\\server\\share\\outside.py",
        "a/" * 5000 + "outside.py",
        "\udce9.py",
    ],
)
def test_a_hostile_path_reads_nothing(root: Path, path: str) -> None:
    around = SourceFiles([str(root)]).around(path, 1)
    assert around is None or (path == "train.py/" and "secret" not in "".join(around.lines))


def test_a_folder_whose_name_only_begins_like_the_root_is_outside(root: Path) -> None:
    assert found(root, f"{root}ect.py") is None


def test_links_that_lead_out_are_not_followed(root: Path, tmp_path: Path) -> None:
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "folder").symlink_to(tmp_path)
    (root / "env.py").symlink_to(root / ".env")
    (root / "loop.py").symlink_to(root / "loop.py")
    (root / "inner.py").symlink_to(root / "src" / "model.py")
    for path in ("link.py", "folder/outside.py", "env.py", "loop.py", str(root / "link.py")):
        assert found(root, path) is None, path
    assert found(root, "inner.py") == "src/model.py"


def test_a_link_that_is_put_there_after_the_check_is_not_followed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = os.path.realpath

    def swap(path: str, *, strict: bool = False) -> str:
        resolved = stock(path, strict=strict)
        if path.endswith("model.py"):
            (root / "src" / "model.py").unlink()
            (root / "src" / "model.py").symlink_to(tmp_path / "outside.py")
        return resolved

    files = SourceFiles([str(root)])
    monkeypatch.setattr(os.path, "realpath", swap)
    assert files.around("src/model.py", 1) is None
    assert (root / "src" / "model.py").is_symlink()


def test_special_and_large_files_and_data_are_not_read(root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    (root / "folder.py").mkdir()
    (root / "large.py").write_bytes(b"#\n" * (MAX_FILE_BYTES // 2 + 1))
    (root / "binary.py").write_bytes(b"a\0b\n")
    (root / "latin.py").write_bytes(b"caf\xe9\n")
    (root / "empty.py").write_bytes(b"")
    done = threading.Event()

    def read() -> None:
        for name in ("pipe.py", "folder.py", "large.py", "binary.py", "latin.py", "empty.py"):
            assert found(root, name) is None, name
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(60), "a pipe without a writer was waited for"
    (root / "long.py").write_text("x" * 10_000 + "\n")
    around = SourceFiles([str(root)]).around("long.py", 1)
    assert around is not None and len(around.lines[0]) == MAX_LINE


def test_a_source_root_must_be_a_folder_of_code(tmp_path: Path) -> None:
    assert checked_roots([str(tmp_path)]) == [os.path.realpath(tmp_path)]
    for wrong in ("/", str(tmp_path / "none")):
        with pytest.raises(InputError, match="ource root"):
            checked_roots([wrong])


def answer(client: Client, frames: object) -> list[dict[str, object] | None]:
    response = client.get("/api/source_code", query_string={"frames": json.dumps(frames)})
    assert response.status_code == 200 and response.json is not None
    answered: list[dict[str, object] | None] = response.json["frames"]
    return answered


def test_servers_read_code_below_the_logdir_and_the_roots_only(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "step.py").write_text("def step():\n")
    frames = [["/x/step.py", 1], ["/x/train.py", 1], ["/x/outside.py", 1]]

    def names(client: Client) -> list[object]:
        return [code and code["path"] for code in answer(client, frames)]

    assert names(Client(MemoryApp(Catalog(str(logs))))) == ["step.py", None, None]
    assert names(Client(MemoryApp(Catalog(str(logs)), [str(root)]))) == ["step.py", "train.py", None]
    monkeypatch.setenv(VARIABLE, f"{root}{os.pathsep}/")
    with_environment = Client(MemoryApp(Catalog(str(logs))))
    assert names(with_environment) == ["step.py", "train.py", None]
    (root / "train.py").write_text("changed\n")  # an answer is not kept longer than it is right
    [code] = answer(with_environment, [["train.py", 1]])
    assert code is not None and code["lines"] == ["changed"]


@pytest.mark.parametrize(
    "frames", ["", "x", "{}", "[1]", '[["a.py"]]', '[["a.py","1"]]', '[["a.py",true]]', '[["a.py",-1]]', "[" * 9000]
)
def test_a_malformed_list_of_frames_is_refused(frames: str, tmp_path: Path) -> None:
    client = Client(MemoryApp(Catalog(str(tmp_path))))
    assert client.get("/api/source_code", query_string={"frames": frames}).status_code == 400
    many = json.dumps([["a.py", 1]] * 65)
    assert client.get("/api/source_code", query_string={"frames": many}).status_code == 400
