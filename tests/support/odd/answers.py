"""Every answer about recordings: the page's endpoints, terminal, exports, offline report and XProf's answers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

from tb_memplugin.analysis.advice import ADVISERS
from tb_memplugin.analysis.compare.causes import causes_between
from tb_memplugin.commands import summary as summary_command
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import Endpoint, endpoints
from tb_memplugin.questions.asking.inputs import Call, Flag, Integer, Parameter
from tb_memplugin.questions.asking.source import Source
from tb_memplugin.questions.compare import compare_text
from tb_memplugin.questions.compare.budget import budget, budget_lines
from tb_memplugin.questions.compare.causes import cause_json
from tb_memplugin.questions.compare.comparison import CompareBy, compared, pairs
from tb_memplugin.questions.compare.pairs import ExplainedComparison
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.export.formats import write_csv, write_json, write_parquet
from tb_memplugin.questions.export.report import answers_of_recording, answers_of_runs, report_source
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.xprof.memory_profile import memory_profile
from tb_memplugin.questions.xprof.memory_viewer import memory_viewer
from tb_memplugin.regex import Regex

TEXTS = {"focus": ("", "a|.*", "["), "ignore": ("", "^$"), "hide": ("",), "host": ("", "none")}
EVERY_RECORDING = ("id", "a", "b", "base")


class Question(NamedTuple):
    """Something that is asked about recordings, and the function that answers."""

    name: str
    answer: Callable[[], Any]


class Failure(AssertionError):
    """A question whose answer was neither an answer nor an InputError."""


def check_every_answer(recordings: Sequence[Recording], only: str = "") -> None:
    """Fail with the names of the questions that have neither an answer nor an InputError, and the first exception."""
    failed: dict[str, Exception] = {}
    for question in questions(recordings):
        if only in question.name:
            try:
                complete(question.answer())
            except InputError as error:
                complete(str(error))
            except Exception as error:
                failed[question.name] = error
    if failed:
        first = next(iter(failed.values()))
        raise Failure(f"{len(failed)} failed: {list(failed)[:12]}: {type(first).__name__}: {first}") from first


def complete(answer: Any) -> None:
    """Write an answer as hosts do."""
    if not isinstance(answer, bytes):
        json.dumps(answer, allow_nan=False).encode()


def questions(recordings: Sequence[Recording]) -> Iterator[Question]:
    """Yield every question about a run of these recordings."""
    source = report_source(recordings, recordings)
    for endpoint in endpoints().values():
        if not endpoint.post:
            yield from _of_endpoint(endpoint, source, recordings)
    stored = [answer for recording in recordings for answer in answers_of_recording(recording, source)]
    for answer in [*stored, *answers_of_runs(source)]:
        yield Question(f"report {answer.endpoint.route} {answer.query}", answer.content)
    yield from _exports(recordings)
    yield from _terminal(recordings)
    for recording in recordings:
        yield Question("xprof memory_profile", partial(memory_profile, [recording]))
        for space in (0, 1, 99):
            yield Question("xprof memory_viewer", partial(memory_viewer, list(recordings), space))
        for ask in ADVISERS:
            yield Question(f"adviser {ask.__module__} {ask.__name__}", partial(_counted, ask, recording))


def _of_endpoint(endpoint: Endpoint, source: Source, recordings: Sequence[Recording]) -> Iterator[Question]:
    ids = [recording.id for recording in recordings]
    runs = [run["name"] for run in source.runs.runs()]
    for recording in recordings:
        values = [_values(parameter, recording, ids, runs) for parameter in endpoint.parameters]
        for chosen in _combinations(values):
            query = {p.name: v for p, v in zip(endpoint.parameters, chosen, strict=True) if v is not None}
            yield Question(f"endpoint {endpoint.route} {query}", partial(endpoint.answer, Call(query, source)))


def _combinations(values: Sequence[Sequence[str | None]]) -> Iterator[tuple[str | None, ...]]:
    """Yield combinations in which each value occurs, and all pairs of values of two neighbors."""
    count = max((len(one) * len(other) for one, other in pairwise([["", ""], *values])), default=1)
    for i in range(count if all(values) else 0):
        yield tuple(one[i // (2 if at % 2 else 1) % len(one)] for at, one in enumerate(values))


def _values(parameter: Parameter, recording: Recording, ids: list[str], runs: list[str]) -> Sequence[str | None]:
    """Return values of a parameter: every choice, both ends of a range and a number between them."""
    name = parameter.name
    if name in EVERY_RECORDING:
        others: list[str | None] = [None] if name == "base" else []
        return [recording.id] if name in ("id", "a") else [*ids[:2], *others]
    if name == "run":
        return runs
    if isinstance(parameter, Flag):
        return ["0", "1"]
    if isinstance(parameter, Integer):
        lengths = {"row": len(recording.allocations) - 1, "from": -1, "to": recording.length, "most": 300}
        last = lengths.get(name, recording.length - 1)
        numbers: list[str | None] = ["0", str(last), str(max(last // 2, 1))]
        return [*numbers, None] if not parameter.required else numbers
    return TEXTS.get(name) or [str(value) for value in parameter.report_values or ("",)]


def _exports(recordings: Sequence[Recording]) -> Iterator[Question]:
    def written(write: Callable[[Sequence[Recording], Any], None]) -> bytes:
        stream = io.BytesIO()
        write(recordings, stream)
        return stream.getvalue()

    yield Question("export csv", lambda: written(write_csv))
    yield Question("export json", lambda: json.loads(written(write_json)))
    yield Question("export parquet", lambda: written(write_parquet))


def _terminal(recordings: Sequence[Recording]) -> Iterator[Question]:
    for recording in recordings:
        for at in (None, "#0", "0s", "1.5s", f"#{recording.length - 1}"):
            yield Question(f"explain at {at}", partial(_explained, recording, at, recordings))
    yield Question("summary", lambda: summary_command.table([summary(r) for r in recordings]))
    for limit in (0, 2**60):
        yield Question(f"check {limit}", partial(_checked, recordings, limit))
    for (a, b), by in product([*pairs(recordings, recordings), (recordings[0], recordings[-1])], CompareBy):
        yield Question("compare", partial(_compared, a, b, by))


def _explained(recording: Recording, at: str | None, others: Sequence[Recording]) -> Any:
    answer = explain(recording, at, others)
    return _both(answer, lines(answer))


def _checked(recordings: Sequence[Recording], limit: int) -> Any:
    answer = budget(recordings, limit, Regex("", "recording"))
    return _both(answer, budget_lines(answer)) if answer["checked"] else answer  # the command refuses to check nothing


def _compared(a: Recording, b: Recording, by: CompareBy) -> Any:
    found = ExplainedComparison(compared(a, b, None, None, by), causes_between(a, b))
    answer = [found.comparison, [cause_json(cause) for cause in found.causes]]
    return _both(answer, [*compare_text.lines(found), *compare_text.markdown(found)])


def _counted(ask: Callable[[Recording], Iterable[object]], recording: Recording) -> int:
    return len(list(ask(recording)))


def _both(answer: Any, texts: Any) -> list[Any]:
    return [answer, "\n".join(texts)]
