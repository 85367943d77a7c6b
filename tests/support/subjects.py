"""All programs for tests of properties: from real profiles, compiled by JAX now, and generated.

Each is read twice: with the compiler's traces, and without them, so that all lifetimes are rebuilt.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
from support.aot import PROGRAMS, ahead_of_time
from support.profiles import compiled_programs

from benchmarks.generate import generate
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

TRACED, REBUILT = True, False


class Life(NamedTuple):
    """One row of a recording, as plain numbers."""

    name: str
    region: int
    kind: int
    offset: int
    size: int
    charge: int
    start: int
    end: int
    defined: int
    last_used: int
    canonical: int


SUBJECTS = [
    *(f"stored:{program}" for program in compiled_programs()),
    *(f"jax:{name}" for name in PROGRAMS),
    *(f"generated:{buffers}" for buffers in (35, 250, 600)),
]
every_subject = pytest.mark.parametrize("name", SUBJECTS)
both_ways = pytest.mark.parametrize("use_traces", [TRACED, REBUILT], ids=["traced", "rebuilt"])


@cache
def serialized(name: str) -> bytes:
    source, _, rest = name.partition(":")
    if source == "stored":
        return next(program.data for program in compiled_programs() if str(program) == rest)
    if source == "jax":
        return ahead_of_time(rest).traced
    return generate(int(rest))[0].SerializeToString()


def parsed(name: str) -> HloProto:
    return HloProto.FromString(serialized(name))


@cache
def recordings(name: str, use_traces: bool) -> list[Recording]:
    """Return one subject per memory space."""
    return read_hlo(serialized(name), source=name, use_traces=use_traces)


@cache
def lives(recording: Recording) -> list[Life]:
    rows = recording.allocations
    names = [rows.name[row] for row in range(len(rows))]
    kinds = recording.regions.kind[rows.region].tolist()
    columns = (rows.offset, rows.size, rows.charge, rows.start, rows.end, rows.defined, rows.last_used)
    numbers = [column.tolist() for column in (*columns, rows.canonical)]
    return [Life(*row) for row in zip(names, rows.region.tolist(), kinds, *numbers, strict=True)]
