"""Lines of commands: control characters of names are escaped in one place, and no command prints past it."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.compare.test_pairs import replace_paths, stored

from tb_memplugin import commands
from tb_memplugin.commands.support.terminal import complain, show
from tb_memplugin.questions.compare.baseline_file import parse, text_of

ODD = "a\x9b31mb\u202ec\x1b]0;d\x07\n\r"


def test_control_characters_are_escaped_on_both_streams(capsys: pytest.CaptureFixture[str]) -> None:
    show("first", ODD)
    complain(ODD)
    printed = capsys.readouterr()
    assert printed.out.split("\n") == ["first", r"a\x9b31mb\u202ec\x1b]0;d\x07\n\r", ""]
    assert printed.err == r"a\x9b31mb\u202ec\x1b]0;d\x07\n\r" + "\n"


@pytest.mark.parametrize("path", sorted(Path(str(commands.__file__)).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_commands_print_by_way_of_the_terminal_alone(path: Path) -> None:
    if path.stem == "terminal":
        return
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "print"]
    assert not [call for call in calls if isinstance(call, ast.Attribute) and ast.unparse(call) == "sys.stdout.write"]


def test_a_baseline_has_no_control_characters_and_keeps_the_names() -> None:
    odd = replace(replace_paths(stored("base"), "layer_*", ODD), name=ODD, elsewhere=(ODD,))
    text = text_of([odd])
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["recordings"][0]["name"] == ODD
    assert parse(text.encode(), "memory.json").recordings == [odd]
