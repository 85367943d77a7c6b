"""Tables that every recording has, as columns: call stacks, allocations and regions."""

from __future__ import annotations

from dataclasses import dataclass

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.text import Text

MAX_FRAMES = 4096  # of a stack in an answer, which may contain hundreds; Python's own limit is 1000


@dataclass(frozen=True, slots=True, eq=False)
class Stacks:
    """A tree of source frames. A call stack is the number of its innermost frame; -1 is no stack."""

    parent: I32
    function: Text
    file: Text
    line: I32

    def frames(self, leaf: int) -> list[tuple[str, str, int]]:
        """Return (function, file, line) of the innermost MAX_FRAMES frames, innermost first; a cycle ends the walk."""
        frames: list[tuple[str, str, int]] = []
        seen: set[int] = set()
        while 0 <= leaf < len(self.parent) and leaf not in seen and len(frames) < MAX_FRAMES:
            seen.add(leaf)
            frames.append((self.function[leaf], self.file[leaf], int(self.line[leaf])))
            leaf = int(self.parent[leaf])
        return frames


@dataclass(frozen=True, slots=True, eq=False)
class Allocations:
    """One row per lifetime.

    A row is live at position p when `start <= p < end`. start = -1: before the recording; end = axis length: until
    its end. `charge` is what the row adds to live bytes while it is live: 0 if another row is charged for its memory.
    `defined` and `last_used` (inclusive) bound the time in which the memory contains the row's own data: an output's
    memory is reserved from the start, but contains the output only once the program has written it.
    """

    id: I64  # the source's own number
    size: I64  # bytes as placed
    requested: I64  # bytes without padding and rounding
    charge: I64
    start: I64
    end: I64
    defined: I64
    last_used: I64
    region: I32
    offset: I64  # bytes from the start of the region; -1 unknown
    canonical: I32  # the row whose memory this one shares; its own number if it shares none
    role: U8
    stack: I32
    name: Text
    shape: Text
    dtype: Text
    op: Text
    scope: Text  # model path

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Memory that allocations are placed in: a program's buffer allocations, an allocator's segments."""

    index: I64  # the source's own number
    size: I64
    kind: U8  # RegionKind
    start: I64 | None = None  # exists at positions start <= p < end; None: at all positions
    end: I64 | None = None

    def __len__(self) -> int:
        return len(self.size)
