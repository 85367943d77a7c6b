"""The wire format, read back by a decoder written from its description."""

from __future__ import annotations

import json
from inspect import unwrap

import numpy as np
import pytest
from support.payload_decoder import decode
from support.recordings import Row, recording

from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.payload import Table, compact, encode
from tb_memplugin.questions.kinds import first_view as memory_viewer
from tb_memplugin.questions.kinds.verdict import MAX_LENGTH_WITH_ROLES, complete_verdict, verdict_text
from tb_memplugin.questions.recording import details, usage
from tb_memplugin.questions.recording import tables as recording_tables
from tb_memplugin.sizes import bytes_text


def test_columns_come_back_as_they_went() -> None:
    text = Text.of(["a", "", "é<b>", "a"])
    unknown = Text(np.array([0, -1, 2, 3], np.int32)[[0, 1, 0, 1]], text.strings)
    table: Table = {
        "bytes": np.array([0, 2**53 - 1, -1, 7]),
        "position": np.array([-1, 0, 1, 2], np.int32),
        "flag": np.array([0, 1, 1, 0], np.uint8),
        "text": text,
        "same": unknown,
    }
    meta, tables = decode(encode({"k": [1, None]}, {"t": table, "none": {"x": np.empty(0)}}))
    assert meta == {"k": [1, None]}
    assert tables["t"] == {
        "bytes": [0, 2**53 - 1, -1, 7],
        "position": [-1, 0, 1, 2],
        "flag": [0, 1, 1, 0],
        "text": ["a", "", "é<b>", "a"],
        "same": ["a", "", "a", ""],
    }
    assert tables["none"] == {"x": []}


def test_columns_of_one_dictionary_share_it() -> None:
    text = Text.of(["x" * 1000])
    once, twice = (len(encode({}, {"t": dict.fromkeys(names, text)})) for names in (["a"], ["a", "b"]))
    assert twice - once < 200


def test_equal_columns_are_sent_once() -> None:
    column = np.arange(1000)
    alone, both = (decode(encode({}, {"t": table})) for table in ({"a": column}, {"a": column, "b": column + 0}))
    assert both[1]["t"]["b"] == alone[1]["t"]["a"] == column.tolist()
    tables: list[Table] = [{"a": column}, {"a": column, "b": column}, {"a": column, "b": -column}]
    sizes = [len(encode({}, {"t": table})) for table in tables]
    assert sizes[1] - sizes[0] < 100 and sizes[2] - sizes[0] >= 4000


@pytest.mark.parametrize("bound", [-(2**31), 2**31 - 1])
def test_whole_numbers_take_eight_bytes_only_where_four_are_too_few(bound: int) -> None:
    within, beyond = np.array([0, bound] * 500), np.array([0, bound + (1 if bound > 0 else -1)] * 500)
    assert 4000 <= len(encode({}, {"t": {"x": within}})) < 4200 < 8000 <= len(encode({}, {"t": {"x": beyond}}))
    for column in (within, beyond):
        assert decode(encode({}, {"t": {"x": column}}))[1]["t"]["x"] == column.tolist()


def test_compact_keeps_the_texts_and_drops_the_rest() -> None:
    few = compact(Text.of([f"name{i}" for i in range(100)]).take(np.array([7, 7, 99])))
    assert ([few[i] for i in range(3)], len(few.strings)) == (["name7", "name7", "name99"], 2)


KINDS = [(64, RegionKind.TEMPORARY), (100, RegionKind.PARAMETER), (32, RegionKind.TEMPORARY)]
ROWS = [
    Row(100, -1, 4, region=1, role=Role.PARAMETER, name="w", stack=1),
    Row(64, 1, 3, name="fusion.1"),
    Row(32, 1, 2, region=2, name="fusion.2"),
    Row(64, 1, 3, canonical=1, charge=0, name="bitcast"),
]


def test_first_view_has_the_answer_and_the_largest_live_rows() -> None:
    r = recording(ROWS, 4, KINDS)
    meta, tables = decode(memory_viewer.first_view(r))
    assert meta["peak"] == {"position": peak(r).position} == {"position": 1}
    assert meta["recording"]["peak_bytes"] == 196
    assert tables["rows"]["row"] == [0, 1, 2]
    assert tables["rows"]["name"] == ["w", "fusion.1", "fusion.2"]
    assert tables["rows"]["source"] == ["model.py:20", "", ""]
    assert tables["rows"]["region_index"] == [1, 0, 2]
    assert np.isnan(tables["rows"]["address"]).all()
    assert tables["usage"]["live_max"] == [100, 196, 164, 100]
    assert (meta["verdict"]["used_bytes"], meta["verdict"]["role"], meta["verdict"]["role_bytes"]) == (
        196,
        "parameters",
        100,
    )


def test_the_first_view_of_a_long_program_leaves_its_roles_to_the_complete_verdict_and_all_rows() -> None:
    r = recording(ROWS, MAX_LENGTH_WITH_ROLES + 1, KINDS)
    meta, tables = decode(memory_viewer.first_view(r))
    assert (meta["verdict"]["used_bytes"], meta["verdict"]["role"]) == (196, "")
    assert not {"role", "copied"} & {*tables["rows"]}
    assert not {unwrap(roles), unwrap(dataflow_graph)} & {*r.memo}
    assert complete_verdict(r)["role"] == "parameters"
    _, everything = decode(recording_tables.rows(r))
    assert everything["rows"]["role"] == [row.role for row in ROWS]


def test_rows_has_everything_and_stacks_temporaries_first() -> None:
    _, tables = decode(recording_tables.rows(recording(ROWS, 4, KINDS)))
    assert tables["rows"]["charge"] == [100, 64, 32, 0]
    assert tables["rows"]["canonical"] == [0, 1, 2, 1]
    assert tables["regions"]["kind"] == ["temporary", "parameter", "temporary"]
    assert tables["regions"]["base"] == [0, 96, 64]
    assert tables["regions"]["index"] == [0, 1, 2]
    assert np.isnan(tables["regions"]["address"]).all()  # a program has none before it runs
    assert tables["program"]["name"] == ["i0", "i1", "i2", "i3"]


def test_usage_of_a_window() -> None:
    meta, tables = decode(usage.usage(recording(ROWS, 4, KINDS), 1, 4, 2))
    assert meta == {"from": 1, "to": 4}
    assert (tables["usage"]["position"], tables["usage"]["live_max"]) == ([1, 3], [196, 100])


def test_details_name_the_stack_and_the_sharers() -> None:
    found = details.details(recording(ROWS, 4, KINDS), 1)
    assert found["defined"] == {"position": 1, "instruction": "i1"}
    assert [share["name"] for share in found["shares"]] == ["bitcast"]
    assert found["shares"][0]["relation"] == "same buffer"
    parameter = details.details(recording(ROWS, 4, KINDS), 0)
    assert parameter["stack"] == [
        {"function": "layer", "file": "model.py", "line": 20},
        {"function": "main", "file": "train.py", "line": 10},
    ]
    assert parameter["defined"] == {"position": -1, "instruction": ""}
    assert json.dumps(parameter)


def test_a_program_that_uses_nothing_has_a_verdict() -> None:
    meta, _ = decode(memory_viewer.first_view(recording([], 0, [(0, RegionKind.TEMPORARY)])))
    assert verdict_text(meta["verdict"]) == "Peak 0 B"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (71 * 2**30 + 2**28, "71.3 GiB"),  # 71.25: halves round up, as on the page
        (1152 * 2**10, "1.13 MiB"),
        (-1152 * 2**10, "\N{MINUS SIGN}1.13 MiB"),
        (999 * 2**20, "999 MiB"),
        (1023 * 2**20, "1.00 GiB"),
        (2**70, "1024 EiB"),
    ],
)
def test_bytes_text(count: int | None, text: str) -> None:
    assert bytes_text(count) == text
