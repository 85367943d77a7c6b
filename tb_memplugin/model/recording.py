"""The model: a Recording is one memory observed along one axis.

It knows no file format, no host and no chart. Tables are columns: one numpy array per attribute, one row per
thing, text interned. A million rows is a normal Recording, so nothing here is an object per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.dataflow import Later, Values

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]


class Axis(StrEnum):
    """What a position on the axis is."""

    PROGRAM_ORDER = "PROGRAM_ORDER"  # index into the flattened schedule
    TIME = "TIME"  # index into the recording's events, in order of time; `clock` gives each one's nanosecond
    INSTANT = "INSTANT"  # a single moment


class Role(IntEnum):
    """What an allocation is for, as the source itself says. The numbers are part of the page's payload."""

    UNKNOWN = 0
    PARAMETER = 1
    OPTIMIZER_STATE = 2
    INPUT = 3
    GRADIENT = 4
    ACTIVATION = 5
    OUTPUT = 6
    CONSTANT = 7
    TEMPORARY = 8
    EXECUTABLE = 9
    THREAD_LOCAL = 10
    STATE = 11  # handed from one call to the next, and read: a cache of keys and values, a hidden state


class RegionKind(IntFlag):
    """Why a region exists. Any of these makes its memory held for the whole program; none means temporary."""

    TEMPORARY = 0
    PARAMETER = 1
    OUTPUT = 2
    CONSTANT = 4
    THREAD_LOCAL = 8

    @property
    def label(self) -> str:
        names = [kind.name.lower() for kind in RegionKind if kind & self and kind.name]
        return ", ".join(names) or "temporary"


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """k interned strings: entry i is `blob[offsets[i]:offsets[i + 1]]`, as the file had it, maybe not UTF-8."""

    blob: bytes
    offsets: I64  # k + 1

    @staticmethod
    def of(texts: Sequence[str]) -> Strings:
        return Strings.of_bytes([text.encode("utf-8", "surrogateescape") for text in texts])

    @staticmethod
    def of_bytes(texts: Sequence[bytes]) -> Strings:
        return Strings(b"".join(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64))

    @staticmethod
    def joined(first: Strings, second: Strings) -> Strings:
        """The entries of the first, then those of the second."""
        return Strings(first.blob + second.blob, np.r_[first.offsets, first.offsets[-1] + second.offsets[1:]])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return self.blob[self.offsets[index] : self.offsets[index + 1]].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A column of n strings: `codes[i]` is the entry of `strings` that row i shows, or -1 for the empty string."""

    codes: I32
    strings: Strings

    @staticmethod
    def of(texts: Sequence[str]) -> Text:
        unique = list(dict.fromkeys(texts))
        code = {text: i for i, text in enumerate(unique)}
        return Text(np.array([code[text] for text in texts], dtype=np.int32), Strings.of(unique))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        code = int(self.codes[row])
        return self.strings[code] if code >= 0 else ""

    def take(self, rows: npt.NDArray[np.integer]) -> Text:
        return Text(self.codes[rows], self.strings)


# Frames of XLA's runtimes around what a program's own buffer allocations become: on GPU all of them, on TPU the
# outputs, since temporaries are on the core's stack.
PROGRAM_FRAMES = ("Build buffer allocations", "AllocateOutputBufferWithInputReuse")


@dataclass(frozen=True, slots=True, eq=False)
class Stacks:
    """A tree of source frames. A stack is its leaf; -1 is no stack."""

    parent: I32
    function: Text
    file: Text
    line: I32

    def frames(self, leaf: int) -> list[tuple[str, str, int]]:
        """(function, file, line), innermost first. A cycle in a broken file ends the walk."""
        frames: list[tuple[str, str, int]] = []
        seen: set[int] = set()
        while 0 <= leaf < len(self.parent) and leaf not in seen:
            seen.add(leaf)
            frames.append((self.function[leaf], self.file[leaf], int(self.line[leaf])))
            leaf = int(self.parent[leaf])
        return frames


@dataclass(frozen=True, slots=True, eq=False)
class Allocations:
    """One row per lifetime.

    A row is live at position p when `start <= p < end`; start = -1: before the recording; end = axis length: to
    its end. `charge` is what it adds to live bytes then: 0 where its memory is another row's charge. `defined` and
    `last_used` (inclusive) are the row's own life within that: an output's memory is held from the start, but holds
    the output only once it is written.
    """

    id: I64  # what the source calls it
    size: I64  # bytes as placed
    requested: I64  # bytes asked for, without padding and rounding
    charge: I64
    start: I64
    end: I64
    defined: I64
    last_used: I64
    region: I32
    offset: I64  # bytes from the start of the region; -1 unknown
    canonical: I32  # the row whose memory this one shares; its own where it shares none
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
    """Containers that allocations lie in: buffer allocations of a program, segments of an allocator."""

    index: I64  # what the source calls it
    size: I64
    kind: U8  # RegionKind
    start: I64 | None = None  # there at positions start <= p < end; None: all along
    end: I64 | None = None

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled program's flattened schedule: one row per position of the axis."""

    module: str
    entry_computation: str
    memory_space: int  # buffer colour
    name: Text
    op: Text
    scope: Text
    computation: Text
    stack: I32
    scoped_bytes: int = 0  # largest scoped allocation of an instruction (TPU VMEM), and whose
    scoped_instruction: str = ""
    value: I32 | None = None  # per row of `allocations`: which of `values` it holds, -1 where the file lacks it
    values: Later[Values] | None = None
    devices: int = 1  # that the program is cut up for
    copies: I32 | None = None  # per leaf of the arguments: how many of them hold the same part; None where not said
    for_cpu: bool = False  # XLA's CPU backend is known to have compiled it


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """What an allocator said of itself right after each event: one row per position of the axis, in bytes."""

    in_use: I64
    reserved: I64  # held for stacks: neither in use nor free
    free: I64
    lifetime_peak: I64  # of in_use, since the allocator began
    fragmentation: F64  # 1 - largest free block / free bytes; NaN where it did not say


class SpanKind(IntEnum):
    """What a named interval is. The numbers are part of the page's payload."""

    STEP = 0
    EXECUTION = 1  # of a compiled program
    ANNOTATION = 2
    OUT_OF_MEMORY = 3  # a moment


@dataclass(frozen=True, slots=True, eq=False)
class NamedSpans:
    """Intervals on the clock, [start, end) in nanoseconds since the profile began, by start."""

    name: Text
    kind: U8
    start_ns: I64
    end_ns: I64

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something the reader could not know, or had to rebuild; `bytes` is how much it concerns, where that is known."""

    code: str
    text: str
    bytes: int | None = None


class Phase(StrEnum):
    """When a memory refused."""

    COMPILE = "compile"  # the compiler adds up what the program will need; nothing was allocated
    LOAD = "load"  # the program is put on the device
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was asked of a memory and not given, in bytes; None where the source does not say.

    `asked` is one allocation, or when compiling all that the program needs. `free` is what was left in all,
    `largest_free` its largest piece. `rank` orders the refusals of one source: 0 says most.
    """

    asked: int | None = None
    free: int | None = None
    largest_free: int | None = None
    capacity: int | None = None
    in_use: int | None = None
    phase: Phase = Phase.RUN
    host: bool = False  # the memory of the machine, not of an accelerator
    wanted_by: str = ""  # the operation, program or array it was for
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """When a recording of one moment was made, or one over time began, as far as its file says."""

    time_ns: int | None = None  # since 1970
    step: int | None = None  # of the training loop


@dataclass(frozen=True, eq=False)
class Recording:
    """One memory of one thing along one axis. `kind` is program, allocator, device_profile, torch_snapshot, ..."""

    kind: str
    title: str
    run: str
    host: str
    source: str
    memory: str
    axis: Axis
    length: int
    allocations: Allocations
    regions: Regions
    stacks: Stacks
    program: Program | None = None
    reported: Reported | None = None
    clock: I64 | None = None  # nanoseconds of each position since the profile began; axis TIME only
    spans: NamedSpans | None = None  # steps, executions, annotations; axis TIME only
    free_stack: I32 | None = None  # per row: the leaf that it was freed in, -1 unknown; None where no source tells
    events: Text | None = None  # what happened at each position, as the source calls it; axis TIME only
    held: I64 | None = None  # bytes that the allocator has from the device, per position; None where not told
    counts: I64 | None = None  # per row: how many allocations of one size it stands for; None: each for itself
    taken: Taken | None = None
    reported_peak: int | None = None
    capacity: int | None = None  # what it must fit into
    capacity_source: str = ""  # who says so, in words; empty: the source itself
    refusal: Refusal | None = None  # of what ran out of memory, the last time that it did
    caveats: tuple[Caveat, ...] = ()
    later: Callable[[], Recording] | None = None  # the same with what took too long for a first look

    @cached_property
    def complete(self) -> Recording:
        """The same recording with everything in it; what a first look can do without may be missing before."""
        return self.later() if self.later is not None else self

    @property
    def id(self) -> str:
        """Stable across processes and usable in a URL."""
        return "|".join((self.run, self.host, self.title, self.memory))

    @property
    def nbytes(self) -> int:
        """About what the tables hold in memory, for caches that must stay bounded."""
        program = self.program
        return self._columns_nbytes + (program.values.nbytes if program is not None and program.values else 0)

    @cached_property
    def _columns_nbytes(self) -> int:
        stacks = self.stacks
        columns = [getattr(self.allocations, name) for name in self.allocations.__slots__]
        columns += [stacks.parent, stacks.function, stacks.file, stacks.line]
        texts = {id(column.strings): column.strings for column in columns if isinstance(column, Text)}
        arrays = [column.codes if isinstance(column, Text) else column for column in columns]
        return sum(a.nbytes for a in arrays) + sum(len(s.blob) + s.offsets.nbytes for s in texts.values())
