"""Recordings that endpoints answer about: those of a server's catalog, or those that an offline report contains."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, NoReturn, Protocol, TypedDict

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.fleet import Fleet, TrendSeries
from tb_memplugin.model.kinds import TrendBy
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import CodeLines
from tb_memplugin.questions.asking.json_types import AboutFile


class RunJson(TypedDict):
    """A run, and the hosts that it has files of."""

    name: str
    hosts: list[str]
    """The hosts, or the files of snapshots, by which its recordings are chosen."""
    host_count: int
    """The number of hosts; snapshots whose names differ only in a number that is no rank count once."""
    modified_ns: int | None
    """The modification time of its newest file, since 1970; null where it is unknown."""
    peak_bytes: int | None
    """The largest peak of its recordings; null until the run has been read."""
    by_host: bool
    """True: the run has many hosts, and is read host by host; without one, the first hosts are listed."""
    sessions: int
    """Sessions of its capture, each of which has hosts of its own."""


class RunRecordings(NamedTuple):
    """The recordings of a run, largest peak first, and the parts of the run that have none."""

    recordings: Sequence[Recording]
    problems: Sequence[AboutFile] = ()
    # By host: the reason why it has no recording over time, as code, text and remedy.
    empty: Mapping[str, object] = {}
    partial: bool = False  # recordings were left out of this list
    notes: Sequence[str] = ()  # sentences about what is not listed without being a problem
    has_fleet: bool = False  # it is of several hosts or devices


class OpenedFile(NamedTuple):
    """The bytes that have arrived of a file, and once it is complete its run and recordings."""

    received: int
    run: str = ""
    recordings: Sequence[Recording] = ()


class FitOutcomes(NamedTuple):
    """The outcomes of the candidates of a fit, and the records that cannot be read."""

    outcomes: Sequence[Outcome] = ()
    problems: Sequence[AboutFile] = ()


NO_CANDIDATES = FitOutcomes()


class KnownFilesJson(TypedDict):
    """The time of a capture, and how much is known of it."""

    began: float
    """The time that its name states, in seconds since 1970; for other names, the time of its files."""
    files: int
    """The number of files."""
    known_files: int
    """The number of files that have been read before; outliers and other programs are known if all have."""


class CaptureNameJson(KnownFilesJson):
    """A capture that can be read as a fleet."""

    name: str
    sessions: int
    hosts: int
    faults: str
    """The known faults, in words; empty without any."""


class ReadingJson(TypedDict):
    """The number of files that are read. Ask again while it is `running`."""

    done: int
    """The number of files that are read."""
    total: int
    seconds: float
    running: bool
    problem: str
    """The reason why the reading ended without an answer; else empty."""


class FleetReading(NamedTuple):
    """Part of a capture that has been read, and all captures, newest first."""

    captures: Sequence[CaptureNameJson]
    rule: str  # by which sessions are joined, as a sentence
    series_rule: str  # by which files are one process, as a sentence
    hosts: Sequence[str]  # all hosts with files in the capture, whether read or not
    fleet: Fleet | None  # None: nothing yet
    done: int  # files
    total: int
    seconds: float
    is_running: bool
    problem: str = ""  # why it ended without a fleet


class TrendReading(NamedTuple):
    """The trend over all captures; without series while they are read."""

    series: Sequence[TrendSeries]
    done: int  # files
    total: int
    seconds: float
    is_running: bool
    problem: str = ""


class Reads(IntEnum):
    """The files that a request reads before it can be answered, the fewest first."""

    NOTHING = 0  # that is not in memory
    LISTING = 1  # the folders of the logdir
    SMALL_FILES = 2
    LARGE_FILES = 3


class Recordings(Protocol):
    """Recordings by id, and what belongs to the same file or run. Unknown ids are InputErrors."""

    def recording(self, recording_id: str) -> Recording: ...

    def file_of(self, recording_id: str) -> Sequence[Recording]:
        """Return all recordings of the file that contains this one, itself included."""

    def run_of(self, recording: Recording) -> Sequence[Recording]:
        """Return all recordings of the run that contains this one, itself included."""

    def programs(self, modules: Collection[str]) -> Sequence[Recording]:
        """Return the programs of dumps that are compiled from modules of these names."""


class Runs(Protocol):
    """The runs of a logdir, for the lists of the page. Unknown names are InputErrors."""

    @property
    def logdir(self) -> str: ...

    def runs(self) -> Sequence[RunJson]:
        """Return all runs, newest first. InputError where there are none."""

    def run(self, name: str, host: str | None = None) -> RunRecordings:
        """Return the recordings of a run, or of one host of it. Of a run that is read host by host, the first ones."""

    def fit(self) -> FitOutcomes:
        """Return the candidates of fits, each with the name of its run, which has recordings if it was compiled."""


class Fleets(Protocol):
    """Captures of many hosts, which are read in the background."""

    def fleet(self, capture: str) -> FleetReading:
        """Return the part of a capture that has been read; empty: the newest. InputError for an unknown one."""

    def trend(self, by: TrendBy) -> TrendReading:
        """Return the trend over all captures, with a point for each day or for each of them."""


class Uploading(Protocol):
    """Texts and files that users paste or drop on the page. InputError where one cannot be read."""

    def paste(self, text: bytes) -> tuple[str, Sequence[Recording]]:
        """Add an error's text as a run; return the run's name and recordings."""

    def open_file(self, key: str, name: str, size: int, at: int, piece: bytes) -> OpenedFile:
        """Add a piece of a file, which becomes a run once it is complete."""


class SourceCode(Protocol):
    """Source files that profiles name."""

    def around(self, path: str, line: int) -> CodeLines | None:
        """Return the code around a line of the file that a profile calls `path`; None where it is not readable."""


class ReadingProgress(Protocol):
    """The progress of the runs that are being read."""

    def of(self, run: str) -> tuple[int, int, float]:
        """Return the bytes read of a run, all that are to be read, and the seconds since the reading began."""


class _Absent:
    """A part that a source lacks: a report is made once, and has no fleet, uploads or source files."""

    def __getattr__(self, name: str) -> NoReturn:
        raise InputError("A report has no such answers", name, "ask where the profiles are")


ABSENT: Any = _Absent()


class Source(NamedTuple):
    """Everything that endpoints read, in parts. Each endpoint declares the part that it uses (inputs.py)."""

    recordings: Recordings
    runs: Runs
    fleets: Fleets = ABSENT
    uploads: Uploading = ABSENT
    code: SourceCode = ABSENT
    progress: ReadingProgress = ABSENT
