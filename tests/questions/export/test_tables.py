"""Exported tables, with every value of every row recomputed from the recording."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recordings import Row, recording
from support.servers import DATA, DEMO, REPOSITORY, TESTS

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import frame_text, source_lines
from tb_memplugin.analysis.usage.steps import allocation_step, step_at
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.questions.export import formats as export_rows
from tb_memplugin.questions.export.formats import write_csv, write_json, write_parquet
from tb_memplugin.questions.recording import stack_texts
from tb_memplugin.questions.recording.stack_texts import MAX_CELL_LENGTH, StackCells
from tb_memplugin.questions.recording.summary import summary

TEXTS = TESTS / "data" / "oom_texts"
SOURCES = [
    *sorted(folder.name for folder in DEMO.iterdir() if folder.is_dir()),
    *("xplane", "hlo", "pprof", "torch_snapshot", "torch_trace"),
    *sorted(file.name for file in TEXTS.glob("*.txt")),
]


@cache
def recordings_of(name: str) -> list[Recording]:
    path = next((path for path in (DEMO / name, TEXTS / name, DATA / name) if path.exists()), None)
    if path is None:
        pytest.skip(f"no {name} beside the repository")
    return listing_of_path(str(path)).recordings


@cache
def categories() -> list[str]:
    """Return the page's names of the roles, in the order of their numbers."""
    source = (REPOSITORY / "frontend/src/payload/generated/constants.ts").read_text()
    return re.findall('"(.+)"', source.partition("export const ROLES = [")[2].partition("]")[0])


def plain_rows(of: Recording) -> Iterator[dict[str, Any]]:
    """Return the values row by row."""
    rows, regions, clock, role = of.allocations, of.regions, of.clock, roles(of)
    source, words = source_lines(of), categories()
    for row in range(len(rows)):
        start, end, region, offset = (int(c[row]) for c in (rows.start, rows.end, rows.region, rows.offset))
        # At a single position, the future is unknown.
        born, freed = start >= 0 and of.axis is not Axis.INSTANT, end < of.length
        program = of.kind == "program"
        placed = region >= 0 and (program or offset >= 0)
        number = int(regions.index[region]) % 2**64 if placed else None
        yield {
            "recording": of.id,
            "row": row,
            "name": rows.name[row],
            "role": words[role[row]],
            "size_bytes": int(rows.size[row]),
            "requested_bytes": int(rows.requested[row]),
            "charge_bytes": int(rows.charge[row]),
            "count": 1 if of.device_profile is None else int(of.device_profile.allocations[row]),
            "shape": rows.shape[row],
            "dtype": rows.dtype[row],
            "op": rows.op[row],
            "op_name": rows.op_name[row],
            "source": source[row],
            "stack": stack_of(of.stacks, int(rows.stack[row])),
            "freed_stack": "" if of.free_stack is None else stack_of(of.stacks, int(of.free_stack[row])),
            "step": step_at(of, start),
            "live_before": not born,
            "never_freed": not freed,
            "allocated_at": start if born else None,
            "freed_at": end if freed else None,
            "allocated_at_ns": int(clock[start]) if born and clock is not None else None,
            "freed_at_ns": int(clock[end]) if freed and clock is not None else None,
            "defined_at": int(rows.defined[row]),
            "last_used_at": int(rows.last_used[row]),
            "region": number,
            "region_kind": RegionKind(int(regions.kind[region])).label if program and placed else "",
            "region_bytes": int(regions.size[region]) if placed else None,
            "offset_bytes": offset if offset >= 0 else None,
            "address": number + offset if number is not None and not program else None,
            "shares_with_row": int(rows.canonical[row]) if rows.canonical[row] != row else None,
            "id": int(rows.id[row]),
        }


def stack_of(stacks: Stacks, leaf: int) -> str:
    return " <- ".join(text_of(*frame) for frame in stacks.frames(leaf))


@cache
def text_of(function: str, file: str, line: int) -> str:
    parent, place = np.array([-1], np.int32), np.array([line], np.int32)
    return frame_text(Stacks(parent, Text.of([function]), Text.of([file]), place), 0)


def as_csv(recordings: list[Recording]) -> str:
    stream = io.BytesIO()
    write_csv(recordings, stream)
    return stream.getvalue().decode()


def as_json(recordings: list[Recording]) -> Any:
    stream = io.BytesIO()
    write_json(recordings, stream)
    return json.loads(stream.getvalue())


def as_parquet(recordings: list[Recording]) -> Any:
    parquet = pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    write_parquet(recordings, stream)
    return parquet.read_table(io.BytesIO(stream.getvalue()))


OPERATORS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def in_csv(value: object) -> str:
    """Return a value as a spreadsheet must see it."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = str(value)
    begins = text[:1]
    skipped = begins.isspace() or unicodedata.category(begins or "a") == "Cc"
    runs = skipped or (begins and begins in OPERATORS + INVISIBLE)
    return f"'{text}" if isinstance(value, str) and runs else text


def check_all(recordings: list[Recording]) -> None:
    plain = [list(plain_rows(found)) for found in recordings]
    every = [row for rows in plain for row in rows]
    told = as_json(recordings)
    assert [found.pop("rows") for found in told["recordings"]] == plain
    assert told == {"recordings": [summary(found) for found in recordings]}
    read = csv.DictReader(io.StringIO(as_csv(recordings), newline=""))
    assert list(read) == [{heading: in_csv(value) for heading, value in row.items()} for row in every]


@pytest.mark.parametrize("name", SOURCES)
def test_csv_and_json_have_every_value(name: str) -> None:
    recordings = recordings_of(name)
    assert recordings
    check_all(recordings)


@pytest.mark.parametrize("name", SOURCES)
def test_parquet_has_every_value(name: str) -> None:
    recordings = recordings_of(name)
    table = as_parquet(recordings)
    assert table.to_pylist() == [row for found in recordings for row in plain_rows(found)]
    told = json.loads(table.schema.metadata[b"tb_memplugin"])
    assert told == {"recordings": [summary(found) for found in recordings]}


def test_parquet_has_types_that_can_be_grouped_by() -> None:
    table = as_parquet(recordings_of("train_step"))
    sums = table.group_by("role").aggregate([("size_bytes", "sum")]).to_pylist()
    sizes = sum(int(found.allocations.size.sum()) for found in recordings_of("train_step"))
    assert sum(line["size_bytes_sum"] for line in sums) == sizes and len(sums) > 3
    schema = table.schema
    assert {str(schema.field(name).type) for name in ("size_bytes", "allocated_at", "id")} == {"int64"}
    assert {str(schema.field(name).type) for name in ("region", "address")} == {"uint64"}
    assert str(schema.field("never_freed").type) == "bool"
    assert {str(schema.field(name).type) for name in ("name", "stack", "role")} == {"string"}


def hostile(names: list[str], end: int = 3) -> Recording:
    rows = [Row(8 * i, i % 3 - 1, end, name=name, stack=i % 3 - 1, role=Role.INPUT) for i, name in enumerate(names)]
    return recording(rows, 4)


# The result of Strings: surrogates are not valid text.
names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=20)


@settings(max_examples=40, derandomize=True)
@given(names, st.integers(1, 9))
def test_any_name_comes_back_whatever_the_pieces(names: list[str], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_rows, "PIECE_ROWS", piece)
        recordings = [hostile(names), hostile([]), hostile(names[:3], end=4)]
        check_all(recordings)


def test_parquet_in_pieces_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_rows, "PIECE_ROWS", 2)
    recordings = [hostile([]), hostile(list("abcde"))]
    assert as_parquet(recordings).to_pylist() == [row for found in recordings for row in plain_rows(found)]
    assert as_parquet([hostile([])]).num_rows == 0


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\ta", "'\ta"),
        (" =1+1", "' =1+1"),
        (" a", "' a"),
        ("\u00a0\t=1", "'\u00a0\t=1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u200b@SUM(A1)", "'\u200b@SUM(A1)"),
        ("\x00=1", "'\x00=1"),
        *((f"{operator}1", f"'{operator}1") for operator in "\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"),
        ("\ra", '"\'\ra"'),
        ("\na", '"\'\na"'),
        ('=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'),
        ("a,b", '"a,b"'),
        ('a"b', '"a""b"'),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_no_name_is_a_formula_in_a_spreadsheet(name: str, cell: str) -> None:
    _, line = as_csv([hostile([name])]).split("\r\n", 1)
    assert line.startswith(f"run|host|jit_f(1)|HBM,0,{cell},input,0,")


def test_a_stack_that_goes_in_circles_or_on_for_ever_fits_a_cell() -> None:
    found = hostile(["a", "b", "c"])
    circle = replace(found.stacks, parent=np.array([1, 0], np.int32))
    stacks = [row["stack"] for row in as_json([replace(found, stacks=circle)])["recordings"][0]["rows"]]
    assert stacks == ["", "main (train.py:10) <- layer (model.py:20)", "layer (model.py:20) <- main (train.py:10)"]
    many = 20_000
    deep = Stacks(
        np.arange(-1, many - 1, dtype=np.int32),
        Text.of([f"function{i}" for i in range(many)]),
        Text.of([""] * many),
        np.zeros(many, np.int32),
    )
    rows = replace(found.allocations, stack=np.array([-1, 2, many - 1], np.int32))
    _, short, long = (
        r["stack"] for r in as_json([replace(found, stacks=deep, allocations=rows)])["recordings"][0]["rows"]
    )
    assert short == "function2 <- function1 <- function0"
    assert (
        long.startswith("function19999 <- function19998 <- ") and long.endswith("...") and len(long) == MAX_CELL_LENGTH
    )


def test_many_long_stacks_at_once_are_cut_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_texts, "MAX_TOTAL_LENGTH", 50)
    texts = StackCells(hostile(["a"]).stacks).texts(np.array([0, 1, 0, -1], np.int32))  # three others: 16 bytes each
    assert [texts[row] for row in range(4)] == ["main (train.p...", "layer (model....", "main (train.p...", ""]


def test_addresses_of_the_upper_half_are_above_the_others() -> None:
    found = replace(hostile(["a"]), kind=RecordingKind.TORCH_SNAPSHOT)
    regions = replace(found.regions, index=np.array([-(2**40)]))
    [row] = as_json([replace(found, regions=regions)])["recordings"][0]["rows"]
    assert row["address"] == row["region"] == 2**64 - 2**40


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from([0, 0, 1])), max_size=12)


@settings(max_examples=200, derandomize=True)
@given(spans, st.lists(st.integers(0, 40), min_size=1, max_size=20))
def test_a_row_is_born_in_the_step_that_its_event_is_in(found: list[tuple[int, int, int]], times: list[int]) -> None:
    found.sort()
    rows = [Row(1, start, len(times)) for start in range(-1, len(times))]
    of = replace(
        recording(rows, len(times)),
        axis=Axis.TIME,
        clock=np.array(sorted(times)),
        spans=NamedSpans(
            Text.of([f"step {i}" for i in range(len(found))]),
            np.array([kind for *_, kind in found], np.uint8),
            np.array([begin for begin, *_ in found], np.int64),
            np.array([begin + length for begin, length, _ in found], np.int64),
        ),
    )
    steps = allocation_step(of)
    assert [steps[row] for row in range(len(rows))] == [step_at(of, int(start)) for start in of.allocations.start]
