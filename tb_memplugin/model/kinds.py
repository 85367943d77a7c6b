"""Enumerations of the model: axes, roles, kinds of regions and of spans; and what users choose, with defaults."""

from enum import IntEnum, IntFlag, StrEnum
from typing import Self

COMPILE_SECONDS = 600.0  # that a compilation may take
NOTES_PREFIX = "tb_memplugin "  # of the comment of a device profile with the step and memory_stats() as JSON
FAIL_ON = ("missing", "unreadable", "outliers")  # hosts, files and devices on which a check may fail
PAUSE_SECONDS = 60.0  # between two sessions of one capture, at most
DEVICE_MEMORY = "HBM"  # the memory of a device that its allocator manages, whatever it is made of


class Labeled(StrEnum):
    """A text of a record or an answer, with its name or meaning in words."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.label = value, label
        return member


class Axis(StrEnum):
    """The meaning of a position."""

    PROGRAM_ORDER = "PROGRAM_ORDER"  # index into the flattened schedule
    TIME = "TIME"  # index into the recording's events, sorted by time; `clock` has their times in nanoseconds
    INSTANT = "INSTANT"  # a single moment


class Role(IntEnum):
    """The purpose of an allocation, as its source states it. The page's payload contains these numbers."""

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
    STATE = 11  # passed from one call to the next and read by it, such as a key/value cache or a hidden state

    @property
    def label(self) -> str:
        return "thread-local" if self is Role.THREAD_LOCAL else self.name.lower().replace("_", " ")


class RegionKind(IntFlag):
    """Reasons why a region is persistent, that is, live during the whole program. None of them: it is temporary."""

    TEMPORARY = 0
    PARAMETER = 1
    OUTPUT = 2
    CONSTANT = 4
    THREAD_LOCAL = 8

    @property
    def label(self) -> str:
        names = [kind.name.lower() for kind in RegionKind if kind & self and kind.name]
        return ", ".join(names) or "temporary"


class RecordingKind(StrEnum):
    """The kind of source that a recording is read from."""

    PROGRAM = "program"  # the buffer assignment of a compiled program
    ALLOCATOR = "allocator"  # the allocator events of a profile
    DEVICE_PROFILE = "device_profile"  # jax.profiler.save_device_memory_profile
    TORCH_SNAPSHOT = "torch_snapshot"  # torch.cuda.memory._dump_snapshot
    TORCH_TIMELINE = "torch_timeline"  # torch.profiler: a memory timeline, or the memory events of a trace
    OUT_OF_MEMORY = "oom"  # the text of an out-of-memory error
    WATCH = "watch"  # the counters of a device over time, which capture.watch reads

    @property
    def has_program(self) -> bool:
        """Return whether positions are instructions of a compiled program."""
        return self is RecordingKind.PROGRAM

    @property
    def has_addresses(self) -> bool:
        """Return whether regions are numbered by address. A program's are numbered by buffer allocation."""
        return not self.has_program

    @property
    def runs_programs(self) -> bool:
        """Return whether compiled programs allocate from this memory, so that rows can be joined to their buffers."""
        return self is RecordingKind.ALLOCATOR

    @property
    def has_call_graph(self) -> bool:
        """Return whether the recording is a device profile: call stacks with bytes, without times."""
        return self is RecordingKind.DEVICE_PROFILE

    @property
    def is_snapshot(self) -> bool:
        """Return whether a process may write many of these files, one after another."""
        return self in (RecordingKind.DEVICE_PROFILE, RecordingKind.TORCH_SNAPSHOT)

    @property
    def is_torch(self) -> bool:
        """Return whether PyTorch wrote the source."""
        return self in (RecordingKind.TORCH_SNAPSHOT, RecordingKind.TORCH_TIMELINE)

    @property
    def has_tensor_stacks(self) -> bool:
        """Return whether every tensor has the call stacks of its allocation, from which its role is derived."""
        return self is RecordingKind.TORCH_SNAPSHOT

    @property
    def is_sampled(self) -> bool:
        """Return whether the recording is a device's counters at intervals, without allocations."""
        return self is RecordingKind.WATCH

    @property
    def is_failure(self) -> bool:
        """Return whether the recording is only an out-of-memory error."""
        return self is RecordingKind.OUT_OF_MEMORY


HOST_MEMORY = "host"  # the memory of a watched job outside of its devices


class HostPart(StrEnum):
    """Holders of the host's memory in its ledger."""

    PRIVATE = "Private"  # of the watched process alone
    CHILDREN = "Child processes"
    SHM = "/dev/shm"
    SHARED = "Shared"  # by the watched process with others, such as mapped files


class SpanKind(IntEnum):
    """The kind of a named interval. The page's payload contains these numbers."""

    STEP = 0
    EXECUTION = 1  # of a compiled program
    ANNOTATION = 2
    OUT_OF_MEMORY = 3  # a moment


class NumberedFiles(StrEnum):
    """The meaning of files whose names differ in numbers only."""

    AUTO = "auto"  # by evidence
    SERIES = "series"  # as one process
    HOSTS = "hosts"  # each as a host


class TrendBy(StrEnum):
    """The kind of a point of a trend."""

    DAY = "day"  # of several captures in a day, the one with the largest peak
    CAPTURE = "capture"
