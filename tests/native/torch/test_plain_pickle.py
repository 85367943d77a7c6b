"""The reader of plain data from pickles, against pickle.loads where that is safe."""

from __future__ import annotations

import collections
import datetime
import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers import DATA

from tb_memplugin.native.torch import plain_pickle, plain_values

SNAPSHOTS = sorted((DATA / "torch_snapshot").glob("*.pickle")) if DATA.exists() else []

plain_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=5),
    max_leaves=40,
)


def thaw(data: bytes, plain: plain_values.Plain, word: int) -> Any:
    """Return a word as Python has it, but with tuples as lists and integers as signed 64-bit numbers."""
    kind, words = plain_values.kinds(word), np.array([word], np.uint32)
    if kind == plain_values.NONE:
        return None
    if kind == plain_values.FLOAT:
        return struct.unpack("d", struct.pack("q", plain.float_of(word)))[0]
    if kind == plain_values.TEXT:
        [start], [length] = plain.text_spans(plain.text_numbers(words))
        return data[start : start + length].decode()
    if kind == plain_values.LIST:
        return [thaw(data, plain, item) for item in plain.items(word).tolist()]
    if kind == plain_values.RECORD:
        keys, cells = plain.pairs(word)
        return {thaw(data, plain, k): thaw(data, plain, v) for k, v in zip(keys.tolist(), cells.tolist(), strict=True)}
    number = int(plain.integers(words, 0)[0])
    return "huge" if word == plain_values.HUGE else bool(number) if kind == plain_values.BOOL else number


def plainest(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plainest(item) for item in value]
    if isinstance(value, dict):
        return {key: plainest(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return value - 2**64 if value >= 2**63 else value
    return value


def loaded(data: bytes) -> Any:
    plain = plain_pickle.load(data)
    return thaw(data, plain, plain.root)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_real_snapshots_are_as_pickle_loads_them(path: Path) -> None:
    assert loaded(path.read_bytes()) == plainest(pickle.loads(path.read_bytes()))


@given(value=plain_data, protocol=st.integers(2, 5))
def test_plain_data_is_as_pickle_loads_it(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert loaded(data) == plainest(value)
    assert loaded(pickletools.optimize(data)) == plainest(value)


def test_long_lists_come_in_pieces_and_stay_apart_where_they_began_alike() -> None:
    shared = list(range(1000))
    value = [[*shared, 1], [*shared, 2], shared, [*shared, 3] * 3, list(range(5000)), {"a": shared}]
    assert loaded(pickle.dumps(value)) == value


def test_equal_text_and_equal_lists_are_kept_once() -> None:
    frame = {"name": "f", "line": 3}
    data = pickle.dumps([{"frames": [frame, frame]} for _ in range(100)])
    plain = plain_pickle.load(data)
    events = plain.items(plain.root)
    [key] = set(plain.keys().tolist()) - set(
        plain.pairs(int(plain.items(int(plain.pairs(int(events[0]))[1][0]))[0]))[0].tolist()
    )
    assert len(np.unique(plain.list_numbers(plain.column(events, key)))) == 1
    assert len(events) == 100


@settings(max_examples=60)
@given(
    frames=st.integers(1, 400),
    stacks=st.lists(st.lists(st.integers(0, 399), min_size=1, max_size=90), min_size=1, max_size=6),
    events=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    protocol=st.integers(2, 5),
)
def test_stacks_that_repeat_are_as_pickle_loads_them(
    frames: int, stacks: list[list[int]], events: list[int], protocol: int
) -> None:
    shared = [{"name": f"f{i}"} for i in range(frames)]
    found = [[shared[frame % frames] for frame in stacks[event % len(stacks)]] for event in events]
    value = [
        shared,
        *({"frames": [*stack]} for stack in found),
        *([*stack, event] for event, stack in enumerate(found)),
    ]
    assert loaded(pickle.dumps(value, protocol)) == value


def test_the_same_bytes_mean_another_list_after_a_memoized_value_is_replaced() -> None:
    items = b"](" + b"h\x00" * 20 + b"e"
    data = b"\x80\x02(K\x07q\x000" + items * 2 + b"K\x08q\x000" + items + b"t."
    assert loaded(data) == plainest(pickle.loads(data)) == [[7] * 20, [7] * 20, [8] * 20]


def test_bytes_that_append_to_another_list_are_read_each_time() -> None:
    items = b"](" + b"h\x01" * 20 + b"h\x00ae"  # 20 times the second value, to the last of which the first is appended
    data = b"\x80\x02(K\x07q\x000]q\x010" + items * 3 + b"t."
    assert loaded(data) == plainest(pickle.loads(data)) == [[[7, 7, 7]] * 20] * 3


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63), 255, 256, 2**31, -1, 0])
def test_integers_of_64_bits(number: int) -> None:
    assert loaded(pickle.dumps([number])) == plainest([number])


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**4000])
def test_longer_integers_are_told_apart(number: int) -> None:
    assert loaded(pickle.dumps([number])) == ["huge"]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/should-not-be",)


@pytest.mark.parametrize(
    ("value", "asks_for"),
    [
        (Evil(), "posix.system"),
        (datetime.date(2026, 1, 1), "datetime.date"),
        (collections.OrderedDict(a=1), "collections.OrderedDict"),
        ([{"a": np.float64(1)}], "numpy"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_what_asks_for_code_is_refused_by_name(value: Any, asks_for: str, protocol: int) -> None:
    with pytest.raises(plain_pickle.NotPlain, match="code is not run") as raised:
        plain_pickle.load(pickle.dumps(value, protocol))
    # Protocol 2 names some modules as Python 2 did.
    assert asks_for.split(".")[0] in raised.value.asks_for or protocol == 2
    assert raised.value.asks_for


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x02]r\xff\xff\xff\xff.",  # a memo of 4 billion entries
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text of 2 GiB
        b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",
        b"\x80\x02\x8b\xff\xff\xff\xff1.",
        b"\x80\x04h\x05.",
        b"\x80\x04(u.",
        b"\x80\x04]K\x01K\x02s.",
        b"\x80\x04K\x01K\x02a.",
        b"\x80\x04}(K\x01u.",
        b"\x80\x04\x87.",
        b"\x80\x04e.",
        b"(lp0\n.",  # protocol 0
        pickle.dumps({str(i): i for i in range(300)}),
    ],
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(plain_pickle.NotPlain):
        plain_pickle.load(data)


@settings(max_examples=300)
@given(data=st.data())
def test_damage_is_refused_or_read_never_more(data: st.DataObject) -> None:
    value = {"segments": [{"address": 1 << 40, "blocks": [{"size": 5}] * 3}], "traces": [[1.5, None, "text"] * 3]}
    good = bytearray(pickle.dumps(value, data.draw(st.integers(2, 5))))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(good[: data.draw(st.integers(0, len(good)))])
    try:
        plain = plain_pickle.load(cut)
    except plain_pickle.NotPlain:
        return
    assert plain.nbytes < 100 * len(cut) + 20_000
