"""The record of a fit's candidate, `fit.json`: a JSON object with the keys of `tb-memplugin fit --json`."""

import json
import math
from collections.abc import Mapping
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Candidate, Knob, Outcome, PeakPart

MAX_KNOBS = 50
MAX_VALUE = 1 << 53  # the largest value of a knob; above it, JavaScript's numbers are not exact
REMEDY = "run `tb-memplugin fit` again, or delete the file"


def read_outcome(data: bytes, source: str) -> Outcome:
    """Read a record. InputError where the bytes are no record."""
    try:
        found = json.loads(data)
        return _outcome(found)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InputError("Not a record of a fit", source, REMEDY) from None


def _outcome(found: Mapping[str, Any]) -> Outcome:
    knobs = tuple((_text(name), _knob(value)) for name, value in found["knobs"].items())
    if len(knobs) > MAX_KNOBS:  # each is a column of a table
        raise ValueError
    changes = tuple(map(_text, found.get("changes", ())))
    roles = found.get("roles_bytes", found.get("roles", {}))  # older records have `roles`
    return Outcome(
        Candidate(_text(found["step"]), _text(found["target"]), knobs, changes),
        seconds=_number(found.get("seconds") or 0),
        reserved_bytes=_size(found["reserved_bytes"]),
        peak_bytes=_size(found["peak_bytes"]),
        capacity_bytes=_size(found["capacity_bytes"]),
        limit_bytes=_size(found.get("limit_bytes")),
        rematerialized=_size(found["rematerialized"]) or 0,
        rematerialized_flops=_number(found.get("rematerialized_flops") or 0),
        step_seconds=_number(found.get("step_seconds") or 0),
        utilization=_number(found.get("utilization") or 0),
        bound_seconds=_seconds(found.get("bound_seconds")),
        work_seconds=_seconds(found.get("work_seconds")),
        vmem_bytes=_size(found.get("vmem_bytes")) or 0,
        tokens=_size(found.get("tokens")) or 0,
        policies=tuple(map(_text, found.get("policies", ()))),
        roles={_text(role): _size(size) or 0 for role, size in roles.items()},
        parts=tuple(PeakPart(_text(part["name"]), _size(part["bytes"]) or 0) for part in found.get("parts", ())),
        searched=_text(found.get("searched") or ""),
        run=_text(found.get("run") or ""),
        doubtful=found.get("doubtful") is True,
        refused=_text(found.get("refused") or ""),
        error=_text(found.get("error") or ""),
        traceback=_text(found.get("traceback") or ""),
        versions={_text(name): _text(version) for name, version in found.get("versions", {}).items()},
        caveats=tuple(map(_text, found.get("caveats", ()))),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _knob(value: Any) -> Knob:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    if not isinstance(value, int | float | str):
        raise TypeError
    if not isinstance(value, str) and abs(value) > MAX_VALUE:
        raise ValueError
    return value


def _seconds(found: Any) -> dict[str, float]:
    return {_text(name): _number(seconds) for name, seconds in (found or {}).items()}


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):  # not JSON, but Python reads it
        raise ValueError
    return number


def _size(value: Any) -> int | None:
    """Return a number of bytes or instructions, of which a damaged file may contain anything."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise TypeError
    return value
