"""Live buffers and leaks in the terminal: numbers that add up by hand, and their text lines."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from support.allocators import Block, allocator
from support.recordings import Row, recording

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.selectors import choose, position_of
from tb_memplugin.questions.explain import explain_text as view
from tb_memplugin.questions.explain.explain import ExplainedMoment, explain
from tb_memplugin.questions.recording.tree import MAX_LINES, TreeLineJson
from tb_memplugin.questions.recording.tree import lines as tree_lines

STEPS = 12


def training() -> Recording:
    """Return one leak of 100 bytes a step, parameters of 1000 replaced in each, and 500 bytes from before."""
    return allocator(
        [
            Block("other", 500, -1, None),
            *(Block("leak", 100, step, None, stack=1) for step in range(STEPS)),
            *(Block("parameters", 1000, step, step + 1 if step + 1 < STEPS else None) for step in range(-1, STEPS)),
        ],
        STEPS,
    )


def total(answer: ExplainedMoment) -> int:
    parts = [*answer["groups"], answer["before"], answer["unexplained"]]
    assert sum(part["share"] for part in parts) == pytest.approx(1)
    return sum(part["bytes"] for part in parts)


def test_what_is_live_at_the_peak_of_an_allocator() -> None:
    answer = explain(training())
    # In the last step, both generations of the parameters and every leaked block are live.
    assert answer["at"] == {
        **{"position": 34, "time_ns": 11_000_001, "step": "train"},
        **{"bytes": 3700, "peak": True},
    }
    assert [(g["site"], g["allocations"], g["bytes"]) for g in answer["groups"]] == [
        ("parameters", 2, 2000),
        ("leak in layer (model.py:20)", 12, 1200),
    ]
    assert answer["before"]["bytes"] == 500
    assert (answer["unexplained"]["bytes"], total(answer)) == (0, 3700)


@pytest.mark.parametrize("position", range(0, 36, 5))
def test_groups_before_and_unexplained_add_up_at_every_event(position: int) -> None:
    of = training()
    assert of.reported is not None
    stack = dataclasses.replace(of, reported=dataclasses.replace(of.reported, reserved=np.full(of.length, 77)))
    answer = explain(stack, f"#{position}")
    assert answer["unexplained"]["bytes"] == 77
    assert total(answer) == answer["at"]["bytes"] == int(of.reported.in_use[position]) + 77


def test_before_the_first_event_everything_is_from_before() -> None:
    of = training()
    assert of.clock is not None
    answer = explain(dataclasses.replace(of, clock=of.clock + 10), "9ns")
    assert (answer["at"]["position"], answer["at"]["time_ns"], answer["groups"]) == (-1, None, [])
    assert answer["before"]["bytes"] == answer["at"]["bytes"] == 1500
    assert any(line.endswith(": 1.46 KiB live before the first event:") for line in view.lines(answer))


def test_the_shapes_of_one_stack_are_groups_of_their_own() -> None:
    blocks = [Block("a", 400, 0, None, stack=0), Block("a", 400, 0, None, stack=0), Block("a", 800, 0, None, stack=0)]
    groups = explain(allocator(blocks, 1))["groups"]
    assert [(g["shape"], g["allocations"], g["bytes"]) for g in groups] == [("f32[100]", 2, 800), ("f32[200]", 1, 800)]


def test_leaks_follow() -> None:
    answer = explain(training())
    [leak, kept] = answer["leaks"]["findings"]
    assert (leak["verdict"], leak["bytes_per_step"], leak["live_bytes"], leak["confidence"]) == (
        "leak",
        100,
        1200,
        0.998,
    )
    assert leak["curve"] == [100 * (step + 1) for step in range(STEPS)]
    assert leak["stack"] == [
        {"function": "layer", "file": "model.py", "line": 20},
        {"function": "main", "file": "train.py", "line": 10},
    ]
    assert kept["verdict"] == "kept one step"
    assert answer["leaks"]["verdicts"] | {"leak": 1, "kept one step": 1} == answer["leaks"]["verdicts"]
    assert answer["leaks"]["message"] is None


@pytest.mark.parametrize("position", range(-1, 36, 4))
def test_each_tree_sums_up_to_all(position: int) -> None:
    of = training()
    assert of.reported is not None
    stack = dataclasses.replace(of, reported=dataclasses.replace(of.reported, reserved=np.full(of.length, 77)))
    answer = explain(stack, f"#{position}") if position >= 0 else explain(early(stack), "0ns")
    for tree in (answer["model"], answer["source"], answer["function"]):
        assert sum(node["bytes"] for node in tree if node["depth"] == 0) == answer["at"]["bytes"]
        assert sum(node["share"] for node in tree if node["depth"] == 0) == pytest.approx(1)


def early(of: Recording) -> Recording:
    assert of.clock is not None
    return dataclasses.replace(of, clock=of.clock + 10)


def test_trees_in_order_of_weight() -> None:
    answer = explain(training())
    assert [(node["depth"], node["label"], node["bytes"]) for node in answer["function"]] == [
        (0, "parameters", 2000),
        (1, "no Python line", 2000),
        (0, "leak", 1200),
        (1, "layer (model.py:20)", 1200),
        (0, "live before the recording", 500),
    ]
    assert [node["label"] for node in answer["model"] if node["depth"] == 0] == [
        "no model path",
        "live before the recording",
    ]
    assert [(node["depth"], node["label"], node["bytes"]) for node in answer["source"]] == [
        (0, "no Python line", 2000),
        (0, "main (train.py:10)", 1200),
        (1, "layer (model.py:20)", 1200),
        (0, "live before the recording", 500),
    ]


def test_a_chain_of_nodes_is_one_line() -> None:
    def node(depth: int, label: str, size: int, merged: int = 1) -> TreeLineJson:
        return {"depth": depth, "label": label, "bytes": size, "share": size / 1000, "merged": merged}

    tree = [
        *(node(0, "forward", 900), node(1, "model", 900), node(2, "layer_*", 600, 48), node(3, "mlp", 600, 48)),
        *(node(4, "up", 500, 48), node(4, "down", 100, 48), node(2, "logits", 300), node(0, "rest", 96)),
        node(0, "little", 4),
    ]
    assert [*tree_lines(tree)] == [
        "900 B  90.0%  forward/model",
        "600 B  60.0%    layer_* x48/mlp",
        "500 B  50.0%      up",
        "100 B  10.0%      down",
        "300 B  30.0%    logits",
        " 96 B   9.6%  rest",
        "and 1 smaller; --json lists all",
    ]
    assert [*tree_lines(tree, separator=None)][:2] == ["900 B  90.0%  model", "600 B  60.0%    mlp"]
    assert [*tree_lines([])] == ["nothing"]
    many = [node(0, f"n{i}", 1000 - i) for i in range(40)]
    assert len([*tree_lines(many)]) == MAX_LINES + 1


def test_lines_for_people() -> None:
    text = "\n".join(view.lines(explain(training())))
    assert "3.61 KiB live at the peak, #34, 0.011000 s into the profile, in train:" in text
    assert "1.17 KiB  32.4%     12  f32[25]   leak in layer (model.py:20)" in text
    assert "  500 B  13.5%      -  -         live before the recording" in text
    assert "explained by no allocation" not in text
    assert "By model path" not in text
    assert "By jitted function:\n1.95 KiB  54.1%  parameters: no Python line\n1.17 KiB  32.4%  leak: layer" in text
    assert "By source:\n1.95 KiB  54.1%  no Python line\n1.17 KiB  32.4%  layer (model.py:20)\n" in text
    assert "With a call stack: 12 of 24 allocations and 0 of 12 frees" in text
    assert "Leaks, over 12 steps: 1\n" in text
    assert (
        "leak (100%): leak in layer (model.py:20) f32[25]\n    Grows by 100 B per step: it grew in 9 of the 9" in text
    )
    assert "kept one step (100%): parameters f32[250]" in text


def test_a_tree_that_says_nothing_is_no_line() -> None:
    of = allocator([Block("", 8, 0, None), Block("", 4, -1, None)], 1)
    text = "\n".join(view.lines(explain(of)))
    assert "By model path" not in text and "By source" not in text


def test_lines_say_why_nothing_is_said_of_leaks() -> None:
    text = [*view.lines(explain(allocator([Block("a", 4, 0, None)], 3)))]
    assert text[-1].startswith("Leaks: unknown. Growth needs at least 5 steps")


def test_a_program() -> None:
    rows = [Row(64, 0, 4, stack=1), Row(32, 1, 3, role=Role.OUTPUT), Row(8, 3, 4)]
    answer = explain(recording(rows, 4))
    assert (answer["at"]["position"], answer["at"]["bytes"], answer["at"]["time_ns"]) == (1, 96, None)
    assert answer["roles"] == [
        {"role": "temporary", "bytes": 64, "share": 64 / 96},
        {"role": "output", "bytes": 32, "share": 32 / 96},
    ]
    assert [(row["row"], row["bytes"]) for row in answer["buffers"]] == [(0, 64), (1, 32)]
    text = "\n".join(view.lines(answer))
    assert " 64 B  66.7%  fusion  f32[4]{0}  model.py:20  fusion" in text
    assert explain(recording(rows, 4), "#3")["at"]["bytes"] == 72


def test_a_program_lists_its_largest() -> None:
    answer = explain(recording([Row(100 - i, 0, 1) for i in range(30)], 1))
    assert [row["bytes"] for row in answer["buffers"]] == list(range(100, 80, -1))
    assert [*view.lines(answer)][-1] == "and 10 more buffers"


@pytest.mark.parametrize("of", [training(), allocator([], 6), recording([Row(8, 0, 1)], 1), recording([], 0)])
def test_json_is_plain(of: Recording) -> None:
    answer = explain(of)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert all("\n" not in line for line in view.lines(answer))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("#0", 0),
        ("#35", 35),
        ("0s", 0),
        ("0 s", 0),
        ("1ms", 3),
        ("1000us", 3),
        ("1000µs", 3),
        ("1000\u03bcs", 3),
        ("1000001ns", 4),
        ("0.001s", 3),
        ("1.9999ms", 5),
        ("0.011s", 33),
        ("11.000002ms", 35),
    ],
)
def test_moments_as_people_write_them(text: str, position: int) -> None:
    assert position_of(training(), text) == position


@pytest.mark.parametrize(
    "text", ["", "#", "#-1", "#36", "1", "1h", "-1s", "1e3s", "12s", "s", "1.s", "#1\n", "\u0663ns"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(InputError) as error:
        position_of(training(), text)
    assert error.value.where == text
    assert "#" in error.value.remedy or "time" in error.value.remedy


def test_a_program_has_no_clock() -> None:
    with pytest.raises(InputError, match=r"no clock.*#0 to #3"):
        position_of(recording([], 4), "1s")


def test_the_recording_is_chosen_by_its_id_or_a_part_that_only_one_has() -> None:
    first = training()
    second, third = dataclasses.replace(first, memory="GPU_1_bfc"), dataclasses.replace(first, memory="GPU_1_bfc_2")
    every = [first, second, third]
    assert choose(every, None, "path") is first
    assert choose(every, "GPU_0", "path") is first
    assert choose(every, second.id, "path") is second
    assert choose(every, f"folder/{second.id}", "path") is second  # its id in a folder above
    with pytest.raises(InputError, match=r"2 recordings match.*GPU_1_bfc, run"):
        choose(every, "GPU_1", "path")
    with pytest.raises(InputError, match=r"No such recording.*GPU_0_bfc"):
        choose(every, "TPU", "path")
    with pytest.raises(InputError, match="path"):
        choose([], None, "path")


@pytest.mark.parametrize(("share", "host", "chosen"), [(0.92, "host", 1), (0.88, "host", 0), (0.92, "other", 0)])
def test_a_program_with_most_of_the_allocators_peak_is_chosen_for_it(share: float, host: str, chosen: int) -> None:
    allocator = dataclasses.replace(training(), run="run", host="host")
    size = int(share * peak(allocator).bytes)
    sizes = (size, size // 2)
    programs = [dataclasses.replace(recording([Row(of, 0, 4)], 4), host=host) for of in sizes]
    every = [allocator, *programs]
    assert choose(every, None, "path") is every[chosen]


def test_names_that_are_not_known() -> None:
    of = training()
    nothing = Text.of([""] * len(of.allocations))
    unnamed = dataclasses.replace(of, allocations=dataclasses.replace(of.allocations, name=nothing, op_name=nothing))
    assert [group["site"] for group in explain(unnamed)["groups"]] == ["unnamed", "layer (model.py:20)"]
