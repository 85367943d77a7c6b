"""Forests by source line, stack and jitted function."""

from __future__ import annotations

from support.allocators import Block, allocator
from support.forests import FRAMES, drawn, program, weights, with_frames

from tb_memplugin.analysis.ownership.classification import Classification, forest
from tb_memplugin.analysis.ownership.forest import MAX_DEPTH
from tb_memplugin.analysis.ownership.source_lines import callers_first


def test_source_leaves_frameworks_out_and_the_stack_marks_them() -> None:
    of = with_frames(program([("fusion", "jit(step)/mul", 2**i) for i in range(4)]), FRAMES, [5, 6, 7, -1])
    by_source = forest(of, Classification.SOURCE)
    assert drawn(by_source, weights(of, by_source)) == [
        "main (train.py:0) 7",
        "  loss (/home/me/jax/model.py:30) 1",
        "  mine (array.py:60) 2",
        "no Python line 8",
    ]
    by_stack = forest(of, Classification.STACK)
    foreign = [bool(flag) for flag in by_stack.framework]
    assert list(zip(drawn(by_stack, weights(of, by_stack)), foreign, strict=True)) == [
        ("main (train.py:0) 7", False),
        ("  PjitFunction(step) 5", True),
        ("    cache_miss (/venv/lib/python3.12/site-packages/jax/_src/pjit.py:20) 1", True),
        ("      loss (/home/me/jax/model.py:30) 1", False),
        ("        shard_args (pxla.py:40) 1", True),
        ("          _array_shard_arg (array.py:50) 1", True),
        ("    Execute 4", True),
        ("  mine (array.py:60) 2", False),
        ("no stack 8", False),
    ]


def test_by_jitted_function_and_then_by_line() -> None:
    of = with_frames(
        program(
            [
                ("fusion", "jit(step)/mul", 1),
                ("fusion", "jit(step)/jvp(jit(_where))/add", 2),
                ("fusion", "", 4),
                ("parameter", "x", 8),
                ("fusion", "jit(step)/mul", 16),
            ]
        ),
        FRAMES,
        [4, 6, -1, -1, 2],
    )
    found = forest(of, Classification.FUNCTION)
    assert drawn(found, weights(of, found)) == [
        "step 17",
        "  loss (/home/me/jax/model.py:30) 1",
        "  main (train.py:0) 16",
        "_where 2",
        "  mine (array.py:60) 2",
        "no jitted function 4",
        "  no Python line 4",
        "arguments 8",
    ]


def test_an_allocator_by_jitted_function_and_what_was_there_before() -> None:
    of = allocator([Block("step", 8, 0, None, stack=1), Block("", 4, 0, None), Block("old", 2, -1, None)], 1)
    for by, expected in {
        Classification.MODEL: ["no model path 12", "  step 8", "  unnamed 4", "live before the recording 2"],
        Classification.SOURCE: [
            "main (train.py:10) 8",
            "  layer (model.py:20) 8",
            "no Python line 4",
            "live before the recording 2",
        ],
        Classification.FUNCTION: [
            "step 8",
            "  layer (model.py:20) 8",
            "no jitted function 4",
            "  no Python line 4",
            "live before the recording 2",
        ],
    }.items():
        found = forest(of, by)
        assert drawn(found, weights(of, found)) == expected


def test_where_no_line_is_known_the_runtime_s_call_stands_in() -> None:
    frames = [(-1, "PjitFunction(step)", ""), (0, "Execute", ""), (1, "Build buffer allocations", "")]
    of = with_frames(allocator([Block("step", 8, 0, None), Block("step", 4, 0, None)], 1), frames, [2, 99])
    assert drawn(forest(of, Classification.FUNCTION)) == ["step", "  Build buffer allocations", "  no Python line"]


def test_an_array_that_is_named_for_its_line() -> None:
    """Expect one frame: track() records only the line that created an array."""
    of = allocator([Block("train.py:61", 8, 0, None), Block("make.py:6", 4, 0, None, stack=1)], 1)
    assert drawn(forest(of, Classification.SOURCE)) == ["main (train.py:10)", "  layer (model.py:20)", "train.py:61"]
    assert drawn(forest(of, Classification.FUNCTION))[:2] == ["train.py:61", "  train.py:61"]


def test_stacks_of_a_broken_file() -> None:
    circle = [(1, "a", "a.py"), (0, "b", "b.py"), (99, "c", "c.py")]
    of = with_frames(program([("fusion", "", 1)] * 3), circle, [0, 2, 77])
    assert drawn(forest(of, Classification.SOURCE)) == ["b (b.py:10)", "  a (a.py:0)", "c (c.py:20)", "no Python line"]
    deep = [(i - 1, "f", "f.py") for i in range(10_000)]
    found = forest(with_frames(program([("fusion", "", 1)]), deep, [9_999]), Classification.STACK)
    assert len(found.parent) == MAX_DEPTH + 1


def test_each_frame_once_and_after_its_caller() -> None:
    stacks = with_frames(program([]), FRAMES, []).stacks
    order = [at.frame for at in callers_first(stacks, [7, 5, 5, 4])]
    assert order == [0, 1, 7, 2, 3, 4, 5]
