"""The registry of endpoints, and the decorator that declares one.

    @endpoint("holes", RECORDING, Integer("at", -1, last_position))
    def holes(recording: Recording, position: int) -> HolesJson: ...

The function gets one argument for each input, in order. It returns a TypedDict, which is sent as JSON, or the bytes of
tables (questions/asking/payload.py). All modules of questions are imported, so a new endpoint needs no other line.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from pkgutil import walk_packages
from typing import Any, TypeVar

from tb_memplugin import questions
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.inputs import RUN, Call, FileOf, Input, Parameter, RecordingOf

Function = TypeVar("Function", bound=Callable[..., Any])
Query = dict[str, str | int]


@dataclass(frozen=True)
class InReport:
    """Storage of an endpoint's answers in an offline report, for the recordings that `applies` accepts.

    Without `every` it stores one answer for each combination of choices and flags. With it, it stores one answer
    that covers every window, row and position, from which the page computes each (payload/report.ts):
    `every` is called with the arguments of the inputs that name recordings.
    """

    applies: Callable[[Recording], bool] = lambda recording: True
    every: Callable[..., Any] | None = None


EACH_CHOICE = InReport()


@dataclass(frozen=True)
class Endpoint:
    """One route: `api/` + `route`."""

    route: str
    inputs: tuple[Input, ...]
    function: Callable[..., Any]
    report: InReport | None  # None: reports have no answers of it
    post: bool
    live: bool = False  # its answer changes by itself, and is made at once

    @property
    def parameters(self) -> list[Parameter]:
        """The URL parameters, each once."""
        found: dict[str, Parameter] = {}
        for given in self.inputs:
            if isinstance(given, Parameter):
                found.setdefault(given.name, given)
        return list(found.values())

    @property
    def subjects(self) -> list[str]:
        """The parameters that name a recording or a run."""
        return [p.name for p in self.parameters if isinstance(p, RecordingOf | FileOf) or p == RUN]

    def answer(self, call: Call) -> bytes | Any:
        """Return tables as bytes, or a value for JSON. BadParameter or InputError where there is no answer."""
        return self.function(*_arguments(self.inputs, call))

    def report_queries(self, names: Query) -> Iterator[Query]:
        """Yield the queries that an offline report answers; `names` has the recording or run of the queries."""
        varied = {p.name: p.report_values for p in self.parameters if p.name not in names and p.report_values}
        if self.report is not None and self.report.every is not None:
            varied = {}
        for values in product(*varied.values()):
            yield {**names, **dict(zip(varied, values, strict=True))}

    def report_answer(self, query: Query, source: Any) -> bytes:
        """Return the stored form of the answer to one of `report_queries`."""
        call = Call({name: str(value) for name, value in query.items()}, source)
        if self.report is None or self.report.every is None:
            return encoded(self.answer(call))
        inputs = [i for i in self.inputs if not isinstance(i, Parameter) or i.name in query]
        return encoded(self.report.every(*_arguments(inputs, call)))


ENDPOINTS: dict[str, Endpoint] = {}  # by route


def endpoint(
    route: str, *inputs: Input, report: InReport | None = None, post: bool = False, live: bool = False
) -> Callable[[Function], Function]:
    """Declare a function as the endpoint of a route; the function is unchanged."""

    def declare(function: Function) -> Function:
        ENDPOINTS[route] = Endpoint(route, inputs, function, report, post, live)
        return function

    return declare


@cache
def endpoints() -> Mapping[str, Endpoint]:
    """Return all endpoints by route, after importing every module of questions."""
    for module in walk_packages(questions.__path__, f"{questions.__name__}."):
        import_module(module.name)
    return ENDPOINTS


def encoded(answer: bytes | Any) -> bytes:
    """Return the bytes of an answer: tables unchanged, other values as JSON."""
    return answer if isinstance(answer, bytes) else json.dumps(answer, allow_nan=False).encode()


def _arguments(inputs: Any, call: Call) -> list[Any]:
    arguments: list[Any] = []
    for each in inputs:
        arguments.append(each.read(call, arguments))
    return arguments
