"""A question of a command or an agent: its path, the size of the answer, further questions, and its failure."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar, cast

from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.questions.records import record

SCHEMA_VERSION = 3
TOP = 5  # items of a list in a tool's answer and in texts, by default
MORE = 50  # items that a further question asks for
STDIN = "-"
MAX_SELECTOR = 1000  # characters of an id in a command; a part of an id selects the recording too
POSITIONAL = ("path", "a", "b")
UNUSABLE = re.compile("[\0\ud800-\udfff]")  # no argument of a process can contain these

Given = str | int  # True for an option without a value
OmittedJson = dict[str, int]  # by key, the items that a list would have without --top
T = TypeVar("T")


class NextJson(TypedDict):
    """A further question, and the reason to ask it: the command to run, or the tool to call."""

    why: str
    """The reason to ask it."""
    command: NotRequired[list[str]]
    """The command and its arguments, for `subprocess.run`; in a shell, quote each."""
    tool: NotRequired[str]
    """Over MCP: the tool to call, in place of a command."""
    arguments: NotRequired[Mapping[str, Given]]
    """Over MCP: its arguments."""


class AnswerJson(TypedDict):
    """Keys of all answers."""

    schema_version: int
    """The version of these keys."""
    next: list[NextJson]
    """The commands that go deeper; empty where there are none."""
    omitted: NotRequired[OmittedJson]


class Question(NamedTuple):
    """A further question: a command, its arguments by name, and the reason to ask it."""

    command: str
    arguments: Mapping[str, Given]
    why: str


def command_line(question: Question, top: int | None = None) -> NextJson:
    """Return a question as the arguments of a process, which asks for `top` items of each list, too."""
    given = question.arguments if top is None else {"top": top, **question.arguments}
    paths = [str(given[name]) for name in POSITIONAL if name in given]
    places = [f"./{path}" if path.startswith("-") and path != STDIN else path for path in paths]
    options = [
        f"--{name.replace('_', '-')}{'' if value is True else f'={value}'}"  # with "=", a value may begin with a dash
        for name, value in given.items()
        if name not in POSITIONAL
    ]
    return {"why": question.why, "command": ["tb-memplugin", question.command, *places, *options, "--json"]}


def selector(recording_id: str) -> str:
    """Return a text that selects a recording: its id, or a part of it that an argument can contain."""
    return max(UNUSABLE.split(recording_id), key=len)[:MAX_SELECTOR]


class Asked(NamedTuple):
    """The path as the caller gave it, the items of each list (None: all), and how to phrase further questions."""

    path: str
    top: int | None = TOP
    phrase: Callable[[Question], NextJson] = command_line

    def next(self, *questions: Question | None) -> list[NextJson]:
        """Return the questions that are not None; none about standard input, which can be read only once."""
        return [self.phrase(one) for one in questions if one is not None and STDIN not in one.arguments.values()]

    def answer(self, kind: type[T], *sources: object, next: Iterable[Question | None] = (), **given: Any) -> T:
        """Return an answer: a record (questions/records.py) with further questions, whose lists have `top` items."""
        found = record(kind, *sources, schema_version=SCHEMA_VERSION, next=self.next(*next), **given)
        return bounded(found, self.top)

    def question(self, command: str, why: str, recording_id: str | None = None, **arguments: Given) -> Question:
        """Return a question about the same path, or about one recording of it."""
        chosen = {} if recording_id is None else {"recording": selector(recording_id)}
        return Question(command, {"path": self.path, **chosen, **arguments}, why)


NESTED = 3  # items of a list within an item of a list
DEEPER = 2  # items of a list within such an item
NESTED_SHARE = 5  # a nested list may have one item for each NESTED_SHARE items that are asked for
MAX_TEXT = 300  # characters
MAX_CODE = 3000
MAX_KEYS = 40  # more than any object of ours has; maps of a user's knobs may have any number
MARK = "…"
LONG_TEXTS = {"id": MAX_SELECTOR, "recording": MAX_SELECTOR, "change": MAX_CODE}  # other texts have MAX_TEXT
WHOLE = ("next", "omitted")
COMPLETE = ("roles",)  # lists with an item for each kind, of which there are few

ListLimits = tuple[int | None, ...]  # the limit of lists, of lists within their items, and so on


def bounded(answer: T, top: int | None) -> T:
    """Return an answer with at most `top` items in each list; with None, all of them and whole texts.

    An object whose lists were cut has `omitted`: by key, the number of items that were left out. Lists within an item
    of a list have fewer, and those in COMPLETE all. Texts of more than MAX_TEXT characters end with an ellipsis, ids
    without one.
    """
    deeper = None if top is None else max(min(top, DEEPER), top // NESTED_SHARE)
    return cast(T, _bounded(answer, "", (top, fewer(top), deeper)))


def fewer(top: int | None) -> int | None:
    """Return the number of items of lists within an item of a list, and of overviews of longer lists."""
    return None if top is None else max(min(top, NESTED), top // NESTED_SHARE)


def _bounded(value: Any, key: str, most: ListLimits) -> Any:
    if isinstance(value, str):
        return value if most[0] is None else _text(value, key)
    if isinstance(value, dict):
        return _object(value, most)
    if isinstance(value, list | tuple):
        return [_bounded(item, key, (*most[1:], most[-1])) for item in value]
    return value


def _object(found: dict[str, Any], limits: ListLimits) -> dict[str, Any]:
    most = limits[0]
    omitted = {key: count for key, count in found.get("omitted", {}).items() if count}
    kept: dict[str, Any] = {}
    for key, value in list(found.items())[: None if most is None else MAX_KEYS]:
        if key in WHOLE:
            continue
        if isinstance(value, list | tuple) and most is not None and len(value) > most and key not in COMPLETE:
            omitted[key] = omitted.get(key, 0) + len(value) - most
            value = value[:most]
        kept[key] = _bounded(value, key, limits)
    if len(found) > MAX_KEYS and most is not None:
        omitted["keys"] = len(found) - MAX_KEYS
    rest = {"next": found["next"]} if "next" in found else {}
    return {**kept, **({"omitted": omitted} if omitted else {}), **rest}


def _text(text: str, key: str) -> str:
    most = LONG_TEXTS.get(key, MAX_TEXT)
    if len(text) <= most:
        return text
    return text[:most] if most == MAX_SELECTOR else text[: most - 1] + MARK


Kind = Literal["input", "read", "usage", "internal"]


class FailureJson(TypedDict):
    """The failure, its place (a file, an option or a value), and the remedy."""

    kind: Kind
    """`input`: a file or a value is wrong; `read`: the disk, the network or free memory, so that it may work later;
    `usage`: the call is wrong; `internal`: any other failure."""
    what: str
    """The fault."""
    where: str
    """The file, the option or the value; empty where it is none of them."""
    remedy: str
    """The remedy."""


class ErrorAnswerJson(TypedDict):
    """The answer to a question that failed."""

    schema_version: int
    """The version of these keys."""
    error: FailureJson
    """The fault."""


def error_answer(error: Exception) -> ErrorAnswerJson:
    """Return the answer to a question that raised an error."""
    if isinstance(error, InputError):
        return failed("read" if isinstance(error, ReadError) else "input", error.what, error.where, error.remedy)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, MemoryError):
        return failed("read", "Not enough memory", "", "end other programs, or use a larger machine")
    if isinstance(error, OSError):
        return failed("read", what, str(error.filename or ""), "see --debug for the traceback")
    return failed("internal", what, "", "see --debug for the traceback, and report it")


def failed(kind: Kind, what: str, where: str, remedy: str) -> ErrorAnswerJson:
    """Return the answer to a question that failed."""
    failure: FailureJson = {"kind": kind, "what": what, "where": where, "remedy": remedy}
    answer: ErrorAnswerJson = {"schema_version": SCHEMA_VERSION, "error": failure}
    return bounded(answer, TOP)
