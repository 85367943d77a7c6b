"""The size of answers, and the commands that they name."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tb_memplugin.questions.asking.asked import MAX_SELECTOR, MAX_TEXT, Asked, Question, bounded, command_line, selector


def test_lists_are_cut_at_each_level_and_the_rest_is_counted() -> None:
    tree: Any = {"a": [{"b": [{"c": list(range(9))}] * 9}] * 9, "next": [{"why": ""}] * 9}
    cut = bounded(tree, 5)
    assert cut["omitted"] == {"a": 4} and len(cut["next"]) == 9
    assert len(cut["a"][0]["b"]) == 3 and cut["a"][0]["omitted"] == {"b": 6}
    assert len(cut["a"][0]["b"][0]["c"]) == 2 and cut["a"][0]["b"][0]["omitted"] == {"c": 7}
    assert bounded(tree, None) == tree


def test_roles_are_complete() -> None:
    parts: Any = {"roles": list(range(9)), "lines": list(range(9))}
    assert bounded(parts, 5) == {"roles": parts["roles"], "lines": [0, 1, 2, 3, 4], "omitted": {"lines": 4}}


def test_what_is_left_out_before_is_added() -> None:
    assert bounded({"rows": [1, 2, 3], "omitted": {"rows": 10, "none": 0}}, 2)["omitted"] == {"rows": 11}


def test_names_of_any_length_leave_an_answer_small() -> None:
    long = "x" * 1_000_000
    many = {str(number): long for number in range(1000)}
    answer = {"id": long, "text": long, "rows": [{"name": long, "knobs": many}] * 1000, "knobs": many}
    assert len(json.dumps(bounded(answer, 5))) < 150_000
    cut = bounded({"id": long, "text": long}, 5)
    assert cut["id"] == "x" * MAX_SELECTOR and len(cut["text"]) == MAX_TEXT


def test_a_command_is_the_arguments_of_a_process() -> None:
    """Pass hostile names through a new process, and compare what arrives."""
    given: dict[str, str | int] = {"path": "-rf $(x) 'a\n", "recording": '--json|"; rm *|\x1b', "trend": True}
    command = command_line(Question("explain", given, "because")).get("command", [])
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *command[1:]], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        *("explain", "./-rf $(x) 'a\n", '--recording=--json|"; rm *|\x1b', "--trend", "--json")
    ]


def test_an_id_that_no_argument_can_contain_is_selected_by_a_part() -> None:
    assert selector("run|host\0|jit_step(1)|HBM") == "|jit_step(1)|HBM"
    assert selector("a\ud800long part") == "long part"


def test_standard_input_has_no_further_questions() -> None:
    assert Asked("-").next(Asked("-").question("explain", "why")) == []
