"""The compiled reader of repeated numbers, against protobuf's own parser."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.protobuf.repeated import numbers
from tb_memplugin.protos.pprof_pb2 import Sample

LOCATION_ID, VALUE = 1, 2
integers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)


def read(messages: list[bytes], field: int) -> list[list[int]]:
    length = np.array([len(message) for message in messages], dtype=np.int64)
    data = b"".join(messages)
    counts, values = numbers(data, np.cumsum(length) - length, length, field)
    ends = np.cumsum(counts).tolist()
    return [values[end - count : end].tolist() for count, end in zip(counts.tolist(), ends, strict=True)]


def unpacked(field: int, values: list[int]) -> bytes:
    return b"".join(_VarintBytes(field << 3) + _VarintBytes(value % 2**64) for value in values)


@settings(max_examples=100, derandomize=True)
@given(st.lists(st.tuples(integers, integers), max_size=6))
def test_of_any_messages_packed_or_not(drawn: list[tuple[list[int], list[int]]]) -> None:
    messages = [Sample(location_id=[i % 2**64 for i in ids], value=values) for ids, values in drawn]
    packed = [message.SerializeToString() for message in messages]
    plain = [unpacked(VALUE, values) + unpacked(LOCATION_ID, ids) for ids, values in drawn]
    for written in (packed, plain):
        assert [list(Sample.FromString(data).value) for data in written] == [values for _, values in drawn]
        assert read(written, VALUE) == [values for _, values in drawn]
        assert read(written, LOCATION_ID) == [ids for ids, _ in drawn]


def test_in_pieces() -> None:
    data = Sample(value=[1, 300]).SerializeToString() + unpacked(VALUE, [7]) + Sample(value=[-1]).SerializeToString()
    assert read([data, b"", data], VALUE) == [[1, 300, 7, -1], [], [1, 300, 7, -1]]


@pytest.mark.parametrize("data", [b"\x12\x05\x01", b"\x12\x01\x80", b"\x10", b"\x13"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a valid message at byte \d+ of"):
        read([b"\x12\x01\x05", data], VALUE)
