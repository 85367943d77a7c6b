"""Summaries of many hosts: the peak of each device, the programs of each host, and peaks over days.

Everything here is plain data, which pickles and fits into columns of a database.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_memplugin.model.changes import ChangeCause

MAX_SITES = 16  # of a device


@dataclass(frozen=True, slots=True)
class Site:
    """Bytes at the peak of one source line and operation, such as `checkpoint.py:88 device_put`."""

    text: str
    bytes: int


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """One memory of a host: its peak, in bytes."""

    device: str  # as in `TPU core 2`
    memory: str  # devices with equal text are compared with each other
    measured: bool  # False: the plan of the host's largest program
    peak_bytes: int
    capacity_bytes: int = 0  # 0: unknown
    sites: tuple[Site, ...] = ()  # at the peak, largest first, at most MAX_SITES
    other_bytes: int = 0  # at the peak, of further sites
    title: str = ""  # of the recording, which has run, host, title and device in its id
    growth: str = ""  # the site that leaks fastest; empty: no leak, or too few steps to see one
    growth_bytes: int = 0  # that it adds in each step
    growth_unit: str = ""  # `step`, or `run of jit_train_step` where no steps are marked
    stack_bytes: int = 0  # at the peak: what a TPU reserves for the temporaries of its program


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """A compiled program of a host. Equal fingerprints are equal programs."""

    module: str
    title: str  # of the recording, as in `jit_train_step(34)`
    fingerprint: str  # a hash of the serialized module
    ran: bool = True  # whether it was executed, where the file counts executions
    peak_bytes: int = -1  # -1: not read
    reserved_bytes: int = -1
    problem: str = ""  # why it cannot be read
    memory: str = ""  # the devices' main memory, as in `HBM`; empty: not read
    sites: tuple[Site, ...] = ()  # at the peak, largest first

    def recording_id(self, file: FileSummary) -> str:
        """Return the id of its recording in a file (model/recording.py: Recording.id)."""
        return "|".join((file.run, file.file_host or file.host, self.title, self.memory))


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """The plan of a compiled program for its devices' main memory, in bytes; -1: it has none, or cannot be read."""

    fingerprint: str
    memory: str = ""
    peak_bytes: int = -1
    reserved_bytes: int = -1
    capacity_bytes: int = 0
    sites: tuple[Site, ...] = ()
    other_bytes: int = 0
    problem: str = ""
    temporary_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One file of a host. One that cannot be read has a problem, which may be in a part of it only."""

    path: str
    size: int
    stamp: str
    host: str
    run: str
    devices: tuple[DeviceSummary, ...] = ()
    programs: tuple[ProgramUse, ...] = ()
    problem: str = ""
    may_pass: bool = False  # the problem's cause is not in the file, so it may be readable a moment later
    kind: str = ""  # of its measured recordings: a RecordingKind
    step: int = -1  # of the training loop, at its end; -1: unknown
    time_ns: int = 0  # of its end, since 1970; 0: unknown
    file_host: str = ""  # the host by the file's name, in ids of recordings, where `host` is that of a process


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a fleet, and the host that it belongs to."""

    host: str
    run: str
    path: str
    summary: DeviceSummary
    file_host: str = ""  # as in FileSummary

    @property
    def name(self) -> str:
        return f"{self.host} {self.summary.device}".strip()

    @property
    def recording_id(self) -> str:
        """Return the id of its recording (model/recording.py: Recording.id)."""
        return "|".join((self.run, self.file_host or self.host, self.summary.title, self.summary.device))


@dataclass(frozen=True, slots=True)
class Session:
    """A folder of profiles that belongs to a capture."""

    name: str
    began: float | None  # seconds since 1970, by its name; None if that is no date
    hosts: int


@dataclass(frozen=True, slots=True)
class FileSeries:
    """Files whose names differ in numbers only, with the same devices."""

    host: str  # such as `memory*`
    files: int
    evidence: str  # why they are one process, in words; empty: each file is a host, as nothing shows that


@dataclass(frozen=True, slots=True)
class SeriesGrowth:
    """What leaks from file to file of a series; empty texts without a leak."""

    fingerprint: str  # of the series
    device: str
    growth: str  # the site that leaks fastest
    growth_bytes: int  # that it adds from file to file


@dataclass(frozen=True, slots=True)
class Fleet:
    """All files of one capture, in natural order of their hosts."""

    name: str
    sessions: tuple[Session, ...]
    files: tuple[FileSummary, ...]
    missing: tuple[str, ...] = ()  # hosts of which there is no file, by the gaps in numbered names
    series: tuple[FileSeries, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.host for file in self.files))

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(
            Device(file.host, file.run, file.path, device, file.file_host)
            for file in self.files
            for device in file.devices
        )


@dataclass(frozen=True, slots=True)
class KnownCapture:
    """What is known of a capture that is not read."""

    fleet: Fleet  # with the files that have been read before, and the gaps in the names of all hosts
    hosts: tuple[str, ...]  # all
    began: float  # seconds since 1970
    files: int  # all

    @property
    def is_complete(self) -> bool:
        """Return whether all files have been read before."""
        return len(self.fleet.files) == self.files


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The peak of one day or capture, in bytes: of a memory that of the median device, of a program its plan."""

    day: str  # as in 2026-11-23
    capture: str
    peak_bytes: int
    largest_bytes: int  # of a memory: the worst device; of a program: what it reserves
    devices: int  # of a program: the hosts that have it
    path: str  # of a file with this peak
    key: str  # of a memory: the device in the file; of a program: its fingerprint
    recording: str = ""  # its id


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A line of the source whose bytes at the peak changed."""

    text: str
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Rise:
    """A growth of the peak from one point to the next."""

    before: int  # index in the series
    after: int
    changes: tuple[TrendChange, ...] = ()  # largest growth first
    problem: str = ""  # why there are none
    causes: tuple[ChangeCause, ...] = ()  # of a program, largest growth first


@dataclass(frozen=True, slots=True)
class TrendSeries:
    """The peaks of a memory or of a program, in order of time, and the rises in it."""

    name: str
    is_program: bool
    points: tuple[TrendPoint, ...]
    rises: tuple[Rise, ...] = ()
