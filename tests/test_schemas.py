"""The JSON Schemas in the package: up to date, and what the commands print on stored and on real profiles."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.schemas import schema_name, validate
from support.servers import BIN, DATA, DEMO
from support.torch_training import Training

from tb_memplugin import schemas
from tb_memplugin.cli import main
from tools.generate_schemas import generate

RUNS = sorted(folder for folder in DEMO.iterdir() if folder.is_dir())
MOST_BYTES = 8000  # of an answer
FOLLOWED = 12  # calls about a path


def test_the_committed_schemas_are_up_to_date() -> None:
    found = {f"{name}.json": schemas.text_of(name) for name in schemas.names()}
    assert found == generate(), "run `make schemas`"


def test_a_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "check-fleet"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "check-fleet"
    assert main(["schema"]) == 0
    assert "explain" in capsys.readouterr().out.split()
    assert main(["schema", "../pyproject", "--json"]) == 2
    validate(json.loads(capsys.readouterr().out), "error")


def real_files() -> Iterator[Path]:
    """Yield the smallest real file of each kind, and of each run of profiles."""
    kinds = [kind for kind in sorted(DATA.iterdir()) if kind.is_dir() and "answers" not in kind.name]
    for kind in kinds:
        for folder in [*(DATA / "xplane").iterdir()] if kind.name == "xplane" else [kind]:
            files = [file for file in folder.rglob("*") if file.is_file() and file.suffix not in (".md", ".txt")]
            yield from sorted(files, key=lambda file: file.stat().st_size)[:1]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_answers_about_stored_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in answers(path, capsys):
        assert "error" not in answer


@pytest.mark.shared_data
def test_answers_about_real_files(capsys: pytest.CaptureFixture[str]) -> None:
    if not DATA.is_dir():
        pytest.skip("no test data here")
    paths = list(real_files())
    assert len(paths) > 7
    assert sum(len(list(answers(path, capsys))) for path in paths) > 3 * len(paths)


def answers(path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Yield short answers about a path, and about what they name in `next`: valid, small, and right in `omitted`."""
    waiting = [[command, str(path)] for command in ("summary", "explain", "buffers", "advice")]
    waiting += [["check", str(path), "--max-peak", "1"], ["compare", str(path), str(path)]]
    asked = set[str]()
    while waiting:
        call = waiting.pop(0)
        if " ".join(call) in asked:
            continue
        asked.add(" ".join(call))
        answer = ask([*call, "--top=5"] if "--top" not in " ".join(call) else call, capsys)
        assert_counted(answer, ask([part for part in call if not part.startswith("--top")], capsys))
        waiting += [further["command"][1:] for further in answer.get("next", [])][: FOLLOWED - len(asked)]
        yield answer


def ask(call: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    call = [part for part in call if part != "--json"]
    capsys.readouterr()
    main([*call, "--json"])
    text = capsys.readouterr().out
    answer = json.loads(text)
    name = schema_name([part.partition("=")[0] for part in call])
    validate(answer, "error" if "error" in answer else name)
    assert len(text) < MOST_BYTES or "--top=5" not in call, (call, len(text))
    return answer


def assert_counted(cut: Any, whole: Any, key: str = "") -> None:
    """Assert that nothing is omitted in the whole answer, and that the cut one counts what it leaves out."""
    if isinstance(whole, dict):
        assert "omitted" not in whole, key
        omitted = cut.get("omitted", {})
        for each, value in whole.items():
            if each in ("next", "schema_version"):
                continue
            if isinstance(value, list):
                assert len(cut[each]) + omitted.get(each, 0) == len(value), (key, each)
            assert_counted(cut[each], value, each)
    elif isinstance(whole, list) and len(cut) == len(whole):
        for some, every in zip(cut, whole, strict=True):
            assert_counted(some, every, key)


def test_an_error_without_buffers_leads_to_its_program(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(DEMO / "v5e_out_of_memory")
    error = ask(["explain", run, "--recording=OOM in jit_train_step"], capsys)
    (further,) = error["next"]
    program = ask(further["command"][1:], capsys)
    assert program["recording"]["id"] == "v5e_out_of_memory||jit_train_step|HBM" and program["buffers"]
    assert program["at"]["instruction"] and program["at"]["op_name"].startswith("jit(train_step)/")


def test_buffers_of_a_role_add_up_to_the_role(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(DEMO / "v5e_train_step")
    roles = ask(["explain", run], capsys)["roles"]
    assert len(roles) > 5  # more than lists have
    for role in roles:
        found = ask(["buffers", run, f"--match={role['role']}", "--top=200"], capsys)
        of_role = [one["bytes"] for one in found["buffers"] if one["role"] == role["role"]]
        assert sum(of_role) == role["bytes"]


def test_a_stack_that_is_cut_begins_at_the_users_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rank0.pickle"
    path.write_bytes(pickle.dumps(Training(2, clears=True).snapshot()))
    largest = ask(["buffers", str(path), "--match=model.py"], capsys)["buffers"][0]
    call = ["buffers", str(path), f"--row={largest['row']}"]
    whole = ask([*call, "--top=all"], capsys)["stack"]
    own = next(at for at, frame in enumerate(whole) if frame["file"] == "model.py")
    assert own > 1
    cut = ask([*call, "--top=2"], capsys)
    assert cut["source"] == largest["source"] == f"model.py:{whole[own]['line']}"
    assert cut["stack"] == whole[own : own + 2] and cut["omitted"]["stack"] == len(whole) - 2


def test_hostile_names_are_quoted_and_select_their_recording(tmp_path: Path) -> None:
    """Run what `next` says in a new process, in a folder whose names a shell or an option parser would misread."""
    folder = tmp_path / "--top=all $(touch x) 'a \"b\n" / "plugins" / "profile" / "-s; rm *"
    folder.mkdir(parents=True)
    source = DEMO / "train_step" / "plugins" / "profile" / "cpu" / "localhost.xplane.pb"
    (folder / "--json.xplane.pb").write_bytes(source.read_bytes())
    command = [str(BIN / "tb-memplugin"), "summary", "--json", "--", folder.parents[2].name]
    for _ in range(3):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        command = json.loads(done.stdout)["next"][0]["command"]
        command[0] = str(BIN / "tb-memplugin")
    assert {path.name for path in tmp_path.iterdir()} == {folder.parents[2].name}
