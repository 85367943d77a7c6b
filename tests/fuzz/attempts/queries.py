"""Queries for every endpoint, made from its declared parameters: a new endpoint needs no line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import Endpoint, endpoints
from tb_memplugin.questions.asking.inputs import (
    Choice,
    FileOf,
    Flag,
    Integer,
    Parameter,
    RecordingOf,
)

EXPRESSIONS = ("", "main", ".", "a|b", "(")


@cache
def known_endpoints() -> Mapping[str, Endpoint]:
    """Return all endpoints; a search for their modules takes a millisecond."""
    return endpoints()


def queries(endpoint: Endpoint, recording: Recording, choice: int | None) -> Iterator[dict[str, str]]:
    """Yield one query of an endpoint, or with no `choice` one for each value of the parameter with the most values."""
    values = {parameter.name: _values(parameter, recording) for parameter in endpoint.parameters}
    most = max(map(len, values.values()), default=1)
    for number in range(most) if choice is None else [choice]:
        yield {name: few[(number + at) % len(few)] for at, (name, few) in enumerate(values.items())}


def _values(parameter: Parameter, recording: Recording) -> list[str]:
    match parameter:
        case RecordingOf(optional=True):
            return ["", recording.id]
        case FileOf() | RecordingOf():
            return [recording.id]
        case Flag():
            return ["0", "1"]
        case Choice():
            return [choice.value for choice in parameter.choices]
        case Integer():
            # The outline: the rest may be damaged, which is for the endpoint to find out.
            last = max(recording.length, len(recording.outline.allocations)) - 1
            return ["0", str(last), str(last // 2), "1", "600", str(2**63)]
    return [recording.run] if parameter.name == "run" else list(EXPRESSIONS)
