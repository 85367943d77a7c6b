"""The text of a stack in a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.allocators import Block, allocator
from support.payload_decoder import decode

from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.questions.recording.stack_texts import stack_texts
from tb_memplugin.questions.recording.tables import rows

NONE = -1
# caller, function, file, line
FRAMES = (
    (NONE, "main", "train.py", 1),
    (0, "layer", "model.py", 20),
    (1, "bind", "/env/lib/python3.11/site-packages/jax/_src/core.py", 3),
    (2, "Execute", "", 0),
    (0, "layer", "model.py", 20),
    (4, "Allocate", "", 0),
    (NONE, "Allocate", "", 0),
    (NONE, "wrapper", "/env/lib/python3.11/site-packages/jax/_src/core.py", 9),
    (5, "Execute", "", 0),
)


def with_stacks(*leaves: int) -> Recording:
    parents, functions, files, lines = zip(*FRAMES, strict=True)
    made = allocator([Block("a", 8, 0, None, stack=leaf) for leaf in leaves], steps=1)
    stacks = Stacks(np.array(parents, np.int32), Text.of(functions), Text.of(files), np.array(lines, np.int32))
    return replace(made, stacks=stacks)


def test_a_stack_is_called_by_the_users_innermost_frame() -> None:
    recording = with_stacks(3, 6, 7, NONE, 3, 0)
    assert [stack_texts(recording)[row] for row in range(6)] == [
        "layer (model.py:20), 4 frames",
        "Allocate, 1 frame",
        "wrapper (/env/lib/python3.11/site-packages/jax/_src/core.py:9), 1 frame",
        "",
        "layer (model.py:20), 4 frames",
        "main (train.py:1), 1 frame",
    ]


def test_different_stacks_have_different_names() -> None:
    texts = stack_texts(with_stacks(3, 8, 5))
    assert {texts[0], texts[1]} == {"layer (model.py:20), 4 frames", "layer (model.py:20), 4 frames (stack 2)"}
    assert texts[2] == "layer (model.py:20), 3 frames"


def test_the_page_is_given_them() -> None:
    _, tables = decode(rows(with_stacks(0, NONE)))
    assert tables["rows"]["stack"] == ["main (train.py:1), 1 frame", ""]
