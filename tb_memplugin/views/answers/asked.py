"""A question about recordings: their path, the length of the answer, and the form of further questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict

SCHEMA_VERSION = 2
TOP = 5  # items of a list
MORE = 50  # of a further question for all of them
STDIN = "-"
MAX_SELECTOR = 1000  # characters of an id in a command; a part of an id selects the recording too
POSITIONAL = ("path", "a", "b")
UNUSABLE = re.compile("[\0\ud800-\udfff]")  # no argument of a process can contain these

Given = str | int  # True for an option without a value


class NextJson(TypedDict):
    """A further question, and the reason to ask it: the command to run, or the tool to call."""

    why: str
    command: NotRequired[list[str]]
    """Its arguments, the program first; for `subprocess.run`, not for a shell."""
    tool: NotRequired[str]
    arguments: NotRequired[Mapping[str, Given]]


class AnswerJson(TypedDict):
    """What all answers have."""

    schema_version: int
    next: list[NextJson]


@dataclass(frozen=True)
class Question:
    """A further question: a command, its arguments by name, and the reason to ask it."""

    command: str
    arguments: Mapping[str, Given]
    why: str


def command_line(question: Question) -> NextJson:
    """Return a question as the arguments of a process."""
    given = question.arguments
    places = [_place(str(given[name])) for name in POSITIONAL if name in given]
    options = [_option(name.replace("_", "-"), value) for name, value in given.items() if name not in POSITIONAL]
    return {"why": question.why, "command": ["tb-memplugin", question.command, *places, *options, "--json"]}


def _option(name: str, value: Given) -> str:
    return f"--{name}" if value is True else f"--{name}={value}"  # with "=", a value may begin with a dash


def _place(path: str) -> str:
    return f"./{path}" if path.startswith("-") and path != STDIN else path


def selector(recording_id: str) -> str:
    """Return what selects a recording: its id, or the part of it that an argument can contain."""
    return max(UNUSABLE.split(recording_id), key=len)[:MAX_SELECTOR]


@dataclass(frozen=True)
class Asked:
    """The path as the caller gave it, the items of each list (None: all), and how to phrase further questions."""

    path: str
    top: int | None = TOP
    phrase: Callable[[Question], NextJson] = command_line

    def next(self, *questions: Question | None) -> list[NextJson]:
        """Return the questions that there are. None of standard input, which can be read only once."""
        return [self.phrase(one) for one in questions if one is not None and STDIN not in one.arguments.values()]

    def question(self, command: str, why: str, recording_id: str | None = None, **arguments: Given) -> Question:
        """Return a question about the same path, or about one recording of it."""
        chosen = {} if recording_id is None else {"recording": selector(recording_id)}
        return Question(command, {"path": self.path, **chosen, **arguments}, why)
