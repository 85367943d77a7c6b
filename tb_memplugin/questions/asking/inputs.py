"""Inputs of endpoints: URL parameters with their types and limits, and the recordings that they name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.source import Reads, Source

# A limit of an integer: a number, or a function of the values of the inputs declared before it.
Limit = int | Callable[..., int]


class BadParameter(InputError):
    """A parameter that is missing, malformed or out of range."""


class Call(NamedTuple):
    """One request: its URL parameters, where recordings come from, and the body of a POST."""

    query: Mapping[str, str]
    source: Source
    body: bytes = b""


class Input(ABC):
    """One positional argument of an endpoint's function."""

    reads: Reads = Reads.NOTHING
    """The part of the logdir that the argument reads, besides files of named recordings and runs."""

    @abstractmethod
    def read(self, call: Call, before: Sequence[Any]) -> Any:
        """Return the argument; `before` are those of the inputs declared earlier. BadParameter or InputError."""


@dataclass(frozen=True)
class FromRequest(Input):
    """An argument that a function finds in the request and the inputs declared before it."""

    find: Callable[[Call, Sequence[Any]], Any]
    reads: Reads = Reads.NOTHING

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        return self.find(call, before)


@dataclass(frozen=True)
class Parameter(Input):
    """An input that is read from the URL parameter `name`."""

    name: str
    default: Any = field(default=None, kw_only=True)
    """The argument where the parameter is missing, or a function of the arguments before it; None: it is required."""
    optional: bool = field(default=False, kw_only=True)
    """True if the argument is None where the parameter is missing or empty."""

    @property
    def required(self) -> bool:
        return self.default is None and not self.optional

    @property
    def report_values(self) -> tuple[str | int, ...] | None:
        """The values for which an offline report has answers; None: only the default."""
        return None

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        text = call.query.get(self.name)
        if self.optional and not text:
            return None
        if text is not None:
            return self.parse(text, call, before)
        if self.default is None:
            raise BadParameter("Parameter missing", self.name, "add it to the query")
        return _limit(self.default, before)

    @abstractmethod
    def parse(self, text: str, call: Call, before: Sequence[Any]) -> Any:
        """Return the argument for a parameter as it was sent."""


@dataclass(frozen=True)
class FreeText(Parameter):
    """Free text."""

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> str:
        return text


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number from `low` to `high`."""

    low: Limit
    high: Limit

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> int:
        low, high = _limit(self.low, before), _limit(self.high, before)
        remedy = f"give one from {low} to {high}"
        try:
            value = int(text)
        except ValueError:
            raise BadParameter("Not a whole number", f"{self.name}={text}", remedy) from None
        if not low <= value <= high:
            raise BadParameter("Out of range", f"{self.name}={value}", remedy)
        return value


@dataclass(frozen=True)
class Flag(Parameter):
    """0 or 1."""

    @property
    def report_values(self) -> tuple[str | int, ...]:
        return (0, 1)

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> bool:
        return bool(Integer(self.name, 0, 1).parse(text, call, before))


@dataclass(frozen=True)
class Choice(Parameter):
    """One value of an enum."""

    choices: type[StrEnum]

    @property
    def report_values(self) -> tuple[str | int, ...]:
        return tuple(choice.value for choice in self.choices)

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> StrEnum:
        try:
            return self.choices(text)
        except ValueError:
            remedy = f"one of {', '.join(self.choices)}"
            raise BadParameter("No such choice", f"{self.name}={text}", remedy) from None


@dataclass(frozen=True)
class RecordingOf(Parameter):
    """The recording with this id, or its outline, which is read faster."""

    outline: bool = False

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> Recording:
        recording = call.source.recordings.recording(text)
        return recording.outline if self.outline else recording


@dataclass(frozen=True)
class FileOf(Parameter):
    """All recordings of the file that contains the recording with this id; or only the compiled programs."""

    programs: bool = False

    def parse(self, text: str, call: Call, before: Sequence[Any]) -> Sequence[Recording]:
        found = call.source.recordings.file_of(text)
        return [recording for recording in found if recording.kind.has_program or not self.programs]


RECORDING = RecordingOf("id")
OUTLINE = RecordingOf("id", outline=True)  # for answers without call stacks, names and spans
FILE = FileOf("id")
PROGRAMS = FileOf("id", programs=True)
# All recordings of the run of the first argument.
SAME_RUN = FromRequest(lambda call, before: call.source.recordings.run_of(before[0]))
RECORDINGS = FromRequest(lambda call, before: call.source.recordings)
RUNS = FromRequest(lambda call, before: call.source.runs, Reads.LISTING)
FLEETS = FromRequest(lambda call, before: call.source.fleets, Reads.LISTING)
UPLOADS = FromRequest(lambda call, before: call.source.uploads, Reads.LARGE_FILES)
CODE = FromRequest(lambda call, before: call.source.code, Reads.SMALL_FILES)
PROGRESS = FromRequest(lambda call, before: call.source.progress)
RUN = FreeText("run")
BODY = FromRequest(lambda call, before: call.body)  # of a POST


def last_position(recording: Recording, *_: Any) -> int:
    """Return the last position of the recording's axis, 0 where the axis is empty: a limit."""
    return max(recording.length - 1, 0)


def last_row(recording: Recording, *_: Any) -> int:
    """Return the number of the last row of the allocation table: a limit."""
    return len(recording.allocations) - 1


def _limit(limit: Any, before: Sequence[Any]) -> Any:
    return limit(*before) if callable(limit) else limit
