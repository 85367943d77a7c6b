"""Inputs of endpoints: URL parameters with their types and limits, and the recordings that they name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.source import Reads, Recordings, Source

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

    @property
    def reads(self) -> Reads:
        """The part of the logdir that the argument reads, besides files of named recordings and runs."""
        return Reads.NOTHING

    @abstractmethod
    def read(self, call: Call, before: Sequence[Any]) -> Any:
        """Return the argument; `before` are those of the inputs declared earlier. BadParameter or InputError."""


@dataclass(frozen=True)
class Parameter(Input):
    """An input that is read from the URL parameter `name`."""

    name: str

    @property
    def required(self) -> bool:
        return True

    @property
    def report_values(self) -> tuple[str | int, ...] | None:
        """The values for which an offline report has answers; None: only the default."""
        return None

    def text(self, call: Call) -> str:
        """Return the parameter as it was sent."""
        value = call.query.get(self.name)
        if value is None:
            raise BadParameter("Parameter missing", self.name, "add it to the query")
        return value


@dataclass(frozen=True)
class FreeText(Parameter):
    """Free text; required unless it has a default."""

    default: str | None = None

    @property
    def required(self) -> bool:
        return self.default is None

    def read(self, call: Call, before: Sequence[Any]) -> str:
        return self.text(call) if self.default is None else call.query.get(self.name, self.default)


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number from `low` to `high`. Where it may be missing, `default` replaces it."""

    low: Limit
    high: Limit
    default: Limit | None = None

    @property
    def required(self) -> bool:
        return self.default is None

    def read(self, call: Call, before: Sequence[Any]) -> int:
        if self.default is not None and call.query.get(self.name) is None:
            return _limit(self.default, before)
        text, low, high = self.text(call), _limit(self.low, before), _limit(self.high, before)
        try:
            value = int(text)
        except ValueError:
            remedy = f"give one from {low} to {high}"
            raise BadParameter("Not a whole number", f"{self.name}={text}", remedy) from None
        if not low <= value <= high:
            raise BadParameter("Out of range", f"{self.name}={value}", f"give one from {low} to {high}")
        return value


@dataclass(frozen=True)
class OptionalInteger(Integer):
    """A whole number, or None where the parameter is missing or empty."""

    @property
    def required(self) -> bool:
        return False

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        return super().read(call, before) if call.query.get(self.name) else None


@dataclass(frozen=True)
class Flag(Parameter):
    """0 or 1."""

    default: bool

    @property
    def required(self) -> bool:
        return False

    @property
    def report_values(self) -> tuple[str | int, ...]:
        return (0, 1)

    def read(self, call: Call, before: Sequence[Any]) -> bool:
        return bool(Integer(self.name, 0, 1, int(self.default)).read(call, before))


@dataclass(frozen=True)
class Choice(Parameter):
    """One value of an enum."""

    choices: type[StrEnum]

    @property
    def report_values(self) -> tuple[str | int, ...]:
        return tuple(choice.value for choice in self.choices)

    def read(self, call: Call, before: Sequence[Any]) -> StrEnum:
        text = self.text(call)
        try:
            return self.choices(text)
        except ValueError:
            remedy = f"one of {', '.join(self.choices)}"
            raise BadParameter("No such choice", f"{self.name}={text}", remedy) from None


@dataclass(frozen=True)
class NamesRecording(Parameter):
    """A parameter with the id of a recording."""

    optional: bool = False  # None where the parameter is missing or empty

    @property
    def required(self) -> bool:
        return not self.optional

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        if self.optional and not call.query.get(self.name):
            return None
        return self.named(call.source.recordings, self.text(call))

    @abstractmethod
    def named(self, recordings: Recordings, recording_id: str) -> Any:
        """Return what the id stands for."""


@dataclass(frozen=True)
class RecordingOf(NamesRecording):
    """The recording with this id, or its outline, which is read faster."""

    outline: bool = False

    def named(self, recordings: Recordings, recording_id: str) -> Recording:
        recording = recordings.recording(recording_id)
        return recording.outline if self.outline else recording


@dataclass(frozen=True)
class FileOf(NamesRecording):
    """All recordings of the file that contains the recording with this id; or only the compiled programs."""

    programs: bool = False

    def named(self, recordings: Recordings, recording_id: str) -> Sequence[Recording]:
        found = recordings.file_of(recording_id)
        return [recording for recording in found if recording.kind.has_program or not self.programs]


@dataclass(frozen=True)
class FromRequest(Input):
    """What a function finds in the request and the inputs declared before it."""

    find: Callable[[Call, Sequence[Any]], Any]

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        return self.find(call, before)


@dataclass(frozen=True)
class Part(Input):
    """A part of the source, by its name there, and what a question to it reads."""

    part: str
    reads: Reads = Reads.NOTHING

    def read(self, call: Call, before: Sequence[Any]) -> Any:
        return getattr(call.source, self.part)


RECORDING = RecordingOf("id")
OUTLINE = RecordingOf("id", outline=True)  # for answers without call stacks, names and spans
FILE = FileOf("id")
PROGRAMS = FileOf("id", programs=True)
# All recordings of the run of the first argument.
SAME_RUN = FromRequest(lambda call, before: call.source.recordings.run_of(before[0]))
RECORDINGS = Part("recordings")
RUNS = Part("runs", Reads.LISTING)
FLEETS = Part("fleets", Reads.LISTING)
UPLOADS = Part("uploads", Reads.LARGE_FILES)
CODE = Part("code", Reads.SMALL_FILES)
PROGRESS = Part("progress")
RUN = FreeText("run")
BODY = FromRequest(lambda call, before: call.body)  # of a POST


def last_position(recording: Recording, *_: Any) -> int:
    """Return the last position of the recording's axis, 0 where the axis is empty: a limit."""
    return max(recording.length - 1, 0)


def last_row(recording: Recording, *_: Any) -> int:
    """Return the number of the last row of the allocation table: a limit."""
    return len(recording.allocations) - 1


def _limit(limit: Limit, before: Sequence[Any]) -> int:
    return limit if isinstance(limit, int) else limit(*before)
