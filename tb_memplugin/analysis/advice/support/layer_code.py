"""The function that computes a layer, found by call stacks, and code that wraps it in jax.checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

import numpy as np

from tb_memplugin.analysis.ownership.frames import framework_frames
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.tables import Stacks

LIBRARY = re.compile(r"(?:^|/)(flax/linen|flax/nnx|equinox|haiku)/")
# Code for a method of a module. Modules of the other libraries are called where the layers are.
CLASS_CODE = {
    "flax/linen": "{cls} = nn.remat({cls})  # flax.linen as nn; before the layers are made. Unnamed layers' parameters "
    "are then called Checkpoint{cls}_*",
    "flax/nnx": "{cls}.{method} = nnx.remat({cls}.{method})  # from flax import nnx",
    "equinox": "x = eqx.filter_checkpoint(layer)(x)  # equinox as eqx; where each {cls} is called",
    "haiku": "x = hk.remat(layer)(x)  # haiku as hk; where each {cls} is called",
}
OTHER_CLASS = "x = jax.checkpoint(layer)(x)  # where each {cls} is called"


def callers(stacks: Stacks, frame: int) -> Iterator[int]:
    """Yield the frame and its callers, innermost first. A cycle in a damaged file ends the walk."""
    seen: set[int] = set()
    while 0 <= frame < len(stacks.parent) and frame not in seen:
        seen.add(frame)
        yield frame
        frame = int(stacks.parent[frame])


def leaves_below(stacks: Stacks, leaf: I32, frames: list[int]) -> I64:
    """Return the distinct ones of these innermost frames that are called by one of `frames`."""
    wanted = set(frames)
    found = [one for one in np.unique(leaf).tolist() if not wanted.isdisjoint(callers(stacks, one))]
    return np.array(found, dtype=np.int64)


def called_functions(stacks: Stacks, leaves: I32, frames: list[int]) -> list[int]:
    """Return a user's frame of each function that these lines call; the lines' own code counts as the lines."""
    framework: Mask = framework_frames(stacks)
    wanted, found = set(frames), dict[tuple[int, int], int]()
    for leaf in np.unique(leaves[leaves >= 0]).tolist():
        inner = list(callers(stacks, leaf))
        outside = next((i for i, frame in enumerate(inner) if frame in wanted), 0)
        users = [frame for frame in inner[:outside] if not framework[frame]] or [inner[outside]]
        frame = users[-1]
        found.setdefault((int(stacks.function.codes[frame]), int(stacks.file.codes[frame])), frame)
    return list(found.values())


def layer_lines(stacks: Stacks, inside: I32, outside: I32) -> list[int]:
    """Return the outermost frames that call the innermost frames `inside`, and none of `outside`."""
    elsewhere = {frame for leaf in np.unique(outside[outside >= 0]).tolist() for frame in callers(stacks, leaf)}
    lines: set[int] = set()
    for leaf in np.unique(inside[inside >= 0]).tolist():
        own = [frame for frame in callers(stacks, leaf) if frame not in elsewhere]
        lines.update(own[-1:])
    return sorted(lines)


def function_of(stacks: Stacks, inside: I32, lines: list[int]) -> int:
    """Return a user's frame of the function that all lines of a layer call; -1 if there is none.

    Of functions that only call one another, such as a model that only calls its layers, it is the innermost. A function
    one of whose lines computes a layer is not the layer's own.
    """
    found = -1
    while lines:
        called = called_functions(stacks, inside, lines)
        if len(called) != 1 or called[0] in lines:
            break
        found = called[0]
        inner = _lines_below(stacks, inside, lines)
        lines = inner if len(inner) == 1 else []
    return found


def _lines_below(stacks: Stacks, inside: I32, lines: list[int]) -> list[int]:
    """Return the frames that these lines call on the way to the innermost frames `inside`."""
    wanted, found = set(lines), set[int]()
    for leaf in np.unique(inside[inside >= 0]).tolist():
        inner = list(takewhile(lambda frame: frame not in wanted, callers(stacks, leaf)))
        found.update(inner[-1:])
    return sorted(found)


def is_of_library(stacks: Stacks, inside: I32, lines: list[int]) -> bool:
    """Return whether these lines call modules of a library, such as flax.linen.Dense, and no function of the user."""
    called = called_functions(stacks, inside, lines) if lines else []
    return bool(called) and set(called) <= set(lines) and bool(library_of(stacks, inside, lines))


def has_other_lines(stacks: Stacks, frame: int) -> bool:
    """Return whether the call of the function of a frame has frames of other lines as well."""
    same: Mask = (stacks.parent == stacks.parent[frame]) & (stacks.function.codes == stacks.function.codes[frame])
    return bool((same & (stacks.line != stacks.line[frame])).any())


def layer_code(stacks: Stacks, frame: int, leaves: I32, place: str) -> str:
    """Return code that makes the function of a frame rematerialize; `leaves` are the innermost frames inside it."""
    *outer, name = stacks.function[frame].split(".")
    if outer and not outer[-1].startswith("<"):
        text = CLASS_CODE.get(library_of(stacks, leaves), OTHER_CLASS)
        return text.format(cls=outer[-1], method=name)
    name = "layer" if name.startswith("<") else name
    return f"{name} = jax.checkpoint({name})  # {place}"


def library_of(stacks: Stacks, leaves: I32, lines: list[int] | None = None) -> str:
    """Return the library of modules that most of the frames belong to, below the lines if any; empty for none."""
    count: dict[str, int] = {}
    for leaf in np.unique(leaves[leaves >= 0]).tolist():
        for frame in takewhile(lambda frame: frame not in (lines or ()), callers(stacks, leaf)):
            if found := LIBRARY.search(stacks.file[frame].replace("\\", "/")):
                count[found[1]] = count.get(found[1], 0) + 1
    return max(count, key=lambda library: count[library], default="")
