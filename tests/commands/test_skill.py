"""The skill for agents: each command in it runs on the demo, its fields exist, and it is installed without harm."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.servers import BIN, DEMO, TESTS

from tb_memplugin.cli import main
from tb_memplugin.commands.skill import install, skill_text
from tb_memplugin.errors import InputError

FIELD = re.compile(r"`([a-z_]+(?:\[\])?(?:\.[a-z_]+(?:\[\])?)*)`")


class Taught(NamedTuple):
    """A command, and the fields of its answer that the text below it names."""

    heading: str
    command: str
    fields: list[str]


def sections() -> Iterator[Taught]:
    for part in skill_text().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        _, *commands = re.split(r"(?m)^    (tb-memplugin .*)$", text)
        for command, below in zip(commands[::2], commands[1::2], strict=True):
            bullets = re.findall(r"(?m)^- (.*?):", below)
            yield Taught(heading, command, [field for bullet in bullets for field in FIELD.findall(bullet)])


SECTIONS = list(sections())


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what stands for the words in capitals."""
    logdir = tmp_path_factory.mktemp("skill") / "logs"
    shutil.copytree(DEMO, logdir)
    baseline = str(logdir.parent / "memory.json")
    assert main(["baseline", str(logdir / "v5e_mended"), "--write", baseline]) == 0
    return {
        "LOGDIR": str(logdir),
        "ID": "'v5e_out_of_memory||jit_train_step|HBM'",
        "BEFORE": str(logdir / "v5e_out_of_memory"),
        "AFTER": str(logdir / "v5e_mended"),
        "FILE": baseline,
        "SIZE": "15GiB",
        "STEP.py:FUNCTION": f"{TESTS}/fit/changed_steps.py:by_shapes",
        "TARGET": "cpu:1 --budget=1GiB",
    }


def answers(command: str, words: dict[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    spelled = " ".join(words.get(word, word) for word in command.split())
    status = main(shlex.split(spelled)[1:])
    printed = capsys.readouterr().out
    return status, json.loads(printed) if "--json" in command else {}


def values(answer: Any, field: str) -> list[Any]:
    """Return the values at a path such as `recordings[].id`."""
    found = [answer]
    for name in field.split("."):
        found = [
            one[name.removesuffix("[]")] for one in found if isinstance(one, dict) and name.removesuffix("[]") in one
        ]
        found = [item for one in found for item in one] if name.endswith("[]") else found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("taught", SECTIONS, ids=lambda taught: taught.command)
def test_each_command_runs_and_its_fields_exist(
    taught: Taught, words: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if "--write FILE" in taught.command:
        words = {**words, "FILE": str(tmp_path / "memory.json")}
    capsys.readouterr()  # of the fixture
    status, answer = answers(taught.command, words, capsys)
    assert status == 0
    assert bool(taught.fields) == ("--json" in taught.command)
    for field in taught.fields:
        assert values(answer, field), f"{taught.command}: {field}"


@pytest.mark.slow
def test_commands_in_sentences_run_too() -> None:
    error = next((TESTS / "data" / "oom_texts").glob("*.txt"))
    commands = re.findall(r"`(tb-memplugin [^`]+)`", skill_text())
    assert len(commands) == 3
    words = {"COMMAND": "summary", "error.txt": str(error), "LOGDIR": str(DEMO / "train_step")}
    for command in commands:
        spelled = f"{BIN}/{' '.join(words.get(word, word) for word in command.split())}"
        json.loads(subprocess.run(spelled, shell=True, check=True, capture_output=True, timeout=60).stdout)


def test_the_workflow_is_complete() -> None:
    assert [taught.command.split()[1] for taught in SECTIONS] == [
        "summary", "explain", "buffers", "advice", "fit", "fit", "compare", "baseline", "check", "check",
    ]  # fmt: skip


def test_the_check_fails_above_the_budget(words: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = answers(SECTIONS[-1].command, {**words, "SIZE": "10GiB"}, capsys)
    assert status == 1
    assert answer["broken"]


@pytest.mark.slow
def test_further_questions_run_as_they_are(words: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = answers(SECTIONS[0].command, words, capsys)
    assert answer["omitted"]["recordings"] > 0
    for step in answer["next"]:
        assert main(step["command"][1:]) == 0
        json.loads(capsys.readouterr().out)


def test_an_error_has_the_keys_that_the_skill_names(words: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = answers("tb-memplugin explain LOGDIR --recording nothing --json", words, capsys)
    assert status == 2
    assert {"what", "where", "remedy"} <= set(answer["error"])


def test_the_front_matter_is_what_agents_read() -> None:
    _, front, _ = skill_text().split("---\n", 2)
    name, description = re.findall(r"(?m)^(?:name|description): (.*)$", front)
    assert name == "tb-memplugin"  # the folder's name; lower case and hyphens only
    assert 200 < len(description) <= 1024


def test_installing_again_changes_nothing_and_a_newer_version_replaces_an_older(tmp_path: Path) -> None:
    path = tmp_path / "skills" / "tb-memplugin" / "SKILL.md"
    assert install(str(tmp_path / "skills"), force=False) == (path, "Installed")
    assert path.read_text() == skill_text()
    assert install(str(tmp_path / "skills"), force=False) == (path, "Up to date")


def test_a_changed_skill_is_kept_unless_forced(tmp_path: Path) -> None:
    install(str(tmp_path), force=False)
    path = tmp_path / "tb-memplugin" / "SKILL.md"
    path.write_text(changed := path.read_text() + "Ask me first.\n")
    with pytest.raises(InputError, match=r"The skill was changed.*--force"):
        install(str(tmp_path), force=False)
    assert path.read_text() == changed
    install(str(tmp_path), force=True)
    assert path.read_text() == skill_text()


def test_a_skill_of_an_older_version_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tb-memplugin" / "SKILL.md"
    monkeypatch.setattr("tb_memplugin.commands.skill.__version__", "0.0.1")
    install(str(tmp_path), force=False)
    monkeypatch.undo()
    assert "version: 0.0.1" in path.read_text()
    install(str(tmp_path), force=False)
    assert path.read_text() == skill_text()


def test_a_folder_that_cannot_be_written_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["skill", "install", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_skill_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "show"]) == 0
    assert capsys.readouterr().out == skill_text()
