"""Tables of a recording as columns: call stacks, allocations and regions, and those that only some sources have."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from tb_memplugin.model.arrays import F64, I32, I64, U8, Mask
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
        walked = islice(self.callers(leaf), MAX_FRAMES)
        return [(self.function[frame], self.file[frame], int(self.line[frame])) for frame in walked]

    def callers(self, frame: int) -> Iterator[int]:
        """Yield the frame and its callers, innermost first. A cycle in a damaged file ends the walk."""
        seen: set[int] = set()
        while 0 <= frame < len(self.parent) and frame not in seen:
            seen.add(frame)
            yield frame
            frame = int(self.parent[frame])


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
    op_name: Text  # the operation, as JAX names it: the model path

    def __len__(self) -> int:
        return len(self.size)

    def live_at(self, position: int) -> Mask:
        """Mark the rows that are live at a position."""
        return (self.start <= position) & (position < self.end)


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


@dataclass(frozen=True, slots=True, eq=False)
class ReportedMemory:
    """An allocator's own figures right after each event, in bytes: one row per position."""

    in_use: I64
    reserved: I64  # for stacks: neither in use nor free
    free: I64
    lifetime_peak: I64  # of in_use, since the allocator was created
    fragmentation: F64  # 1 - largest free block / free bytes; NaN if not reported


@dataclass(frozen=True, slots=True, eq=False)
class CachingAllocatorState:
    """State that only PyTorch's caching allocator records: one row per position."""

    reserved: I64 | None = None  # bytes reserved from the device: torch.cuda.memory_reserved(); None if not recorded
    events: Text | None = None  # PyTorch's name of the event, such as `segment_map`; None if not recorded


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProfileCounts:
    """Numbers of allocations that only device profiles record. A device profile merges allocations of equal size."""

    allocations: I64  # per row of Allocations, the number of allocations that it represents


@dataclass(frozen=True, slots=True, eq=False)
class ProgramChunks:
    """The compiled program and its buffer allocation that an allocator's chunk was for, one row per allocation."""

    program: Text  # the module's name; empty: not annotated
    allocation: I64  # the number of the buffer allocation; -1 unknown


@dataclass(frozen=True, slots=True, eq=False)
class NamedSpans:
    """Intervals [start, end) in nanoseconds since the profile began, sorted by start."""

    name: Text
    kind: U8  # SpanKind
    start_ns: I64
    end_ns: I64
    steps: I64 | None = None
    """The number of steps in each span, where one span may be several steps; None where each is one."""

    def __len__(self) -> int:
        return len(self.kind)


class MemoryLedger(NamedTuple):
    """All bytes of a memory by holder, which add up to its size. `name`: FREE is the last, if the size is known."""

    name: tuple[str, ...]
    bytes: I64  # a row for each name, a column for each position

    @property
    def used(self) -> I64:
        """Return the bytes that are not free, per position."""
        used: I64 = self.bytes[: -1 if self.name[-1] == FREE else None].sum(axis=0)
        return used


FREE = "Free"


class PhasePeaks(NamedTuple):
    """The most bytes in use during each phase of the steps, and where on the axis."""

    name: tuple[str, ...]
    bytes: I64
    position: I64


class CodeLines(NamedTuple):
    """Lines of a file: its path below its root, its complete path, the number of the first line, and the lines."""

    path: str
    file: str
    first: int
    lines: tuple[str, ...]
