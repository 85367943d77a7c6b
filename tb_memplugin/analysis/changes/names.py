"""Names without what differs between compiles of one program: numbers of modules and layers, layouts of shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from tb_memplugin.analysis.ownership.repeated_layers import DIGITS
from tb_memplugin.model.shapes import dimensions
from tb_memplugin.model.text import Text

PROGRAM_NUMBER = re.compile(r"(\(\d+\)|\.\d+)$")


def program_name(title: str) -> str:
    """Return the name of a program or of a file: `jit_step` of `jit_step.2(34)`, without folders."""
    name = title.replace("\\", "/").rpartition("/")[2]
    while found := PROGRAM_NUMBER.search(name):
        name = name[: found.start()]
    return name


def template(path: str) -> str:
    """Return a path with * for each number."""
    return DIGITS.sub("*", path)


def short_shape(shape: str) -> str:
    """Return `f32[4,512]` of `f32[4,512]{1,0:T(8,128)}`."""
    return shape.partition("{")[0]


def short_shapes(shapes: Text) -> Text:
    """Return `f32[4,512]` of each `f32[4,512]{1,0:T(8,128)}`."""
    return Text.of(shapes.map(short_shape, "", np.object_).tolist())


def dtype_of(shape: str) -> str:
    """Return `f32` of `f32[4,512]`."""
    return shape.partition("[")[0]


def common_path(paths: Sequence[str]) -> str:
    """Return the keys that all paths begin with, `state/mu`, and those that all end with, `state/*/head`."""
    keys = [path.split("/") for path in paths]
    start = _common(keys)
    end = _common([each[len(start) :][::-1] for each in keys])[::-1]
    between = ["*"] if end and max(map(len, keys)) > len(start) + len(end) else []
    return "/".join([*start, *between, *end])


def _common(lists: Sequence[Sequence[str]]) -> list[str]:
    levels = zip(*lists, strict=False)
    return [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]


def size_of(shape: str) -> tuple[int, ...]:
    """Return the dimensions of a shape."""
    return tuple(dimensions(shape))
