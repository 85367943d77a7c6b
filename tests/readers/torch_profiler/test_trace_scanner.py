"""The scanner of traces, against json.loads: the same events, wherever quotes, escapes and braces are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_linearly

from tb_memplugin.native.torch.trace_events import FIELDS, scan

TEXTS = st.text(st.sampled_from('a{}[]",:\\\n é\u2028[memory]'), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(0, 1e15).map(lambda value: round(value, 3))
VALUES = st.recursive(
    TEXTS | NUMBERS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.sampled_from(FIELDS), st.integers(-(2**63), 2**63 - 1), max_size=6)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["memory", "cpu_op", "user_annotation", "kernel"]))
    event = draw(st.dictionaries(TEXTS, VALUES, max_size=3))
    event |= {"ts": draw(st.floats(0, 1e15).map(lambda value: round(value, 3))), "tid": draw(st.integers(0, 2**62))}
    if kind == "memory":
        event |= {"name": "[memory]", "args": draw(ARGUMENTS) | draw(st.dictionaries(TEXTS, VALUES, max_size=2))}
    else:
        event |= {"cat": kind, "name": draw(TEXTS) + "x", "dur": draw(st.integers(0, 10**6)), "args": draw(VALUES)}
    return dict(draw(st.permutations(list(event.items()))))


@given(content=st.lists(events(), max_size=5), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_the_events_are_those_of_the_json(content: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    data = json.dumps({"deviceProperties": [{"id": 0}], "traceEvents": content}, indent=indent, ensure_ascii=ascii_only)
    raw = data.encode()
    (times, values), (start, duration, thread, is_operator, name, length), damaged = scan(raw)
    memory = [event for event in content if event["name"] == "[memory]"]
    operators = [event for event in content if event.get("cat") in ("cpu_op", "user_annotation")]
    assert not damaged
    assert times.tolist() == pytest.approx([event["ts"] for event in memory], rel=1e-15)
    assert values.tolist() == [[event["args"].get(field, -1) for field in FIELDS] + [event["tid"]] for event in memory]
    assert start.tolist() == pytest.approx([event["ts"] for event in operators], rel=1e-15)
    assert duration.tolist() == [event["dur"] for event in operators]
    assert thread.tolist() == [event["tid"] for event in operators]
    assert is_operator.tolist() == [event["cat"] == "cpu_op" for event in operators]
    spans = zip(name.tolist(), length.tolist(), strict=True)
    assert [json.loads(raw[at : at + size]) for at, size in spans] == [event["name"] for event in operators]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-1", -1), ("9223372036854775807", 2**63 - 1), ("1e3", 1000), ("15e-1", 1), ("2.75", 2), ("-0", 0)],
)
def test_a_number_is_read_in_every_form_of_json(text: str, number: int) -> None:
    (_, values), _, damaged = scan(f'{{"name":"[memory]","ts":1,"args":{{"Bytes":{text}}}}}'.encode())
    assert not damaged
    assert values[0, 1] == number


@pytest.mark.parametrize("text", ["9223372036854775808", "1e300", "1e19", '"8"', "9" * 5000])
def test_a_number_that_does_not_fit_is_damage(text: str) -> None:
    assert scan(f'{{"name":"[memory]","ts":1,"args":{{"Bytes":{text}}}}}'.encode())[2] == 1


def test_an_unescaped_quote_costs_its_line() -> None:
    event = '{"name":"[memory]","ts":1,"args":{"Bytes":7}}'
    (times, _), _, _ = scan(f'[{event},\n{{"name":"a"b"}},\n{event},\n{event}]'.encode())
    assert len(times) == 3


def test_objects_may_be_nested_without_limit() -> None:
    event = b'{"name":"[memory]","ts":1,"args":{"Bytes":7}}'
    (times, _), _, _ = scan(b'{"x":' * 100_000 + event + b"}" * 200_000 + event)
    assert len(times) == 2


@pytest.mark.parametrize("fragment", ['"[memory]"', '{"name":"[memory]",', '{"cat":"cpu_op","name":"', '"', "\\", "1e"])
def test_time_is_linear_in_the_size(fragment: str) -> None:
    assert grows_linearly(lambda size: scan(fragment.encode() * (size // len(fragment))), 1 << 21)


def test_the_columns_of_an_empty_file_are_empty() -> None:
    (times, values), columns, damaged = scan(b"")
    assert not damaged
    assert len(times) == len(values) == sum(len(column) for column in columns) == 0
