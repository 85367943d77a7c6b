"""A recording: one memory observed along one axis.

The model depends on no file format, host or chart. Tables are columns: one numpy array per attribute, one row per
allocation or event, strings interned. A million rows is normal, so no row is a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tb_memplugin.model import tables
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.kinds import HOST_MEMORY, Axis, RecordingKind
from tb_memplugin.model.lazy import Lazy, cached_property
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.model.program import Backend, Program


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """Time and step of a snapshot, or of the start of a recording over time, if the file has them."""

    time_ns: int | None = None  # since 1970
    step: int | None = None  # of the training loop
    reason: str = ""  # for a snapshot, such as "90 % of capacity"; empty: the script asked for it


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling of a recording over time, and whether its writer has finished it."""

    interval_ns: int  # between the newest samples
    finished: bool  # False while the job runs, and after it was killed


@dataclass(frozen=True, eq=False)
class Recording:
    """One memory along one axis."""

    kind: RecordingKind
    title: str
    run: str
    host: str
    source: str
    memory: str
    axis: Axis
    length: int
    allocations: tables.Allocations
    regions: tables.Regions
    stacks: tables.Stacks
    program: Program | None = None
    reported: tables.ReportedMemory | None = None
    caching_allocator: tables.CachingAllocatorState | None = None  # PyTorch only
    device_profile: tables.DeviceProfileCounts | None = None  # device profiles only
    clock: I64 | None = None  # nanoseconds of each position since the profile began; axis TIME only
    spans: tables.NamedSpans | None = None  # steps, executions, annotations; axis TIME only
    free_stack: I32 | None = None  # per row: the call stack that freed it, -1 unknown; None if the source has none
    capture_info: CaptureInfo | None = None
    sampling: Sampling | None = None  # of counters that are read at intervals
    ledger: tables.MemoryLedger | None = None  # of counters that are read at intervals
    phases: tables.PhasePeaks | None = None
    reported_peak: int | None = None
    capacity: int | None = None  # bytes of memory on the device
    capacity_source: str = ""  # where that figure comes from, in words; empty: the source itself
    out_of_memory: OutOfMemory | None = None  # the last out-of-memory failure
    program_chunks: tables.ProgramChunks | None = None  # out-of-memory errors of XLA's BFC allocator only
    caveats: tuple[Caveat, ...] = ()
    timelines: tuple[Recording, ...] = ()  # of a PyTorch snapshot: the memory timelines of its run that have categories

    @property
    def outline(self) -> Recording:
        """Return the recording without what takes long to read: call stacks, names and spans may be missing."""
        return self

    def load(self) -> Recording:
        """Read everything that would be read on access. InputError where that is damaged."""
        return self

    @property
    def reserved(self) -> I64 | None:
        """Return the bytes that a caching allocator has reserved, per position; None if not recorded."""
        return self.caching_allocator.reserved if self.caching_allocator is not None else None

    def allocation_counts(self, rows: I64 | None = None) -> I64:
        """Return the number of allocations that each row represents: one, except in device profiles. None: all rows."""
        if self.device_profile is None:
            return np.ones(len(self.allocations) if rows is None else len(rows), dtype=np.int64)
        counts = self.device_profile.allocations
        return counts if rows is None else counts[rows]

    @property
    def is_live(self) -> bool:
        """Return whether the recording's writer has not finished it: its job runs, or was killed."""
        return self.sampling is not None and not self.sampling.finished

    @property
    def backend(self) -> Backend:
        """Return the XLA backend that compiled the program; UNKNOWN for a recording without one."""
        return self.program.backend if self.program is not None else Backend.UNKNOWN

    @property
    def is_main_memory(self) -> bool:
        """False for a program's other memories, such as those on the chip, and for the memory of a job's host."""
        return self.memory != HOST_MEMORY if self.program is None else self.program.memory_space == 0

    @property
    def id(self) -> str:
        """Return the identifier. It is the same in every process, and usable in a URL."""
        return "|".join((self.run, self.host, self.title, self.memory))

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """Results of functions of this recording, by function: they live as long as it does."""
        return {}

    @cached_property
    def computing(self) -> dict[Hashable, AbstractContextManager[Any]]:
        """A lock for each function of `memo`, so that threads do not compute the same result at once."""
        return {}


def _read_on_access(field: str) -> Any:
    return cached_property(lambda recording: getattr(recording._complete(), field))


class LazyRecording(Recording):
    """A recording whose call stacks, names and spans are read when one of its tables is first accessed.

    Sizes, lifetimes and the allocator's own figures are in `outline`, which is read at once. Code that needs no more
    uses `recording.outline` to be fast; code that does not think of it gets the complete tables. The tables have the
    same rows in the same order. Accessing them raises InputError where the rest of the file is damaged.
    """

    _outline: Recording
    _complete: Lazy[Recording]
    allocations = _read_on_access("allocations")
    stacks = _read_on_access("stacks")
    spans = _read_on_access("spans")
    free_stack = _read_on_access("free_stack")
    caveats = _read_on_access("caveats")

    @staticmethod
    def of(outline: Recording, read: Callable[[], Recording]) -> LazyRecording:
        """Return a recording that calls `read` once, for the fields above; all others are the outline's."""
        recording = object.__new__(LazyRecording)
        copied = {f.name: getattr(outline, f.name) for f in fields(Recording) if f.name not in vars(LazyRecording)}
        vars(recording).update(copied, _outline=outline, _complete=Lazy(read))
        return recording

    @property
    def outline(self) -> Recording:
        outline: Recording = vars(self).get("_outline", self)  # a copy by dataclasses.replace has all fields instead
        return outline

    def load(self) -> Recording:
        if self.outline is not self:
            self._complete()
        return self
