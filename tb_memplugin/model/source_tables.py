"""Tables of a recording that only some sources have: allocators, PyTorch, device profiles, error texts, profiles."""

from __future__ import annotations

from dataclasses import dataclass

from tb_memplugin.model.arrays import F64, I64, U8
from tb_memplugin.model.text import Text


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
