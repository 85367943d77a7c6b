"""The compiled scan of a profile's samples, against protobuf's own parser."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.pprof.samples import samples
from tb_memplugin.protos.pprof_pb2 import Sample

ENTRY = np.array([-1, 0, 1, 0, 2], dtype=np.int32)  # the strings of a string table; the first is empty
KINDS, DEVICES = {1, 3}, {2}  # strings equal to the first and the second key
KEYS = np.array([0, 1], dtype=np.int32)
CHOSEN = np.array([2, 0])

integers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)
labels = st.lists(st.tuples(st.integers(-2, 6), st.integers(-5, 2**62)), max_size=4)
messages = st.lists(st.builds(lambda ids, values, found: made(ids, values, found), integers, integers, labels))


def made(ids: list[int], values: list[int], found: list[tuple[int, int]]) -> Sample:
    sample = Sample(location_id=[i % 2**64 for i in ids], value=values)
    for key, text in found:
        sample.label.add(key=key, str=text)
    return sample


def read(written: list[bytes]) -> tuple[list[bytes], list[bool], list[int], list[list[int]], list[list[int]]]:
    length = np.array([len(data) for data in written], dtype=np.int64)
    data = b"".join(written)
    stack, pieces, told, values, texts = samples(data, np.cumsum(length) - length, length, CHOSEN, ENTRY, KEYS)
    runs = [data[start : start + size] for start, size in zip(*(column.tolist() for column in stack), strict=True)]
    return runs, pieces.tolist(), told.tolist(), values.T.tolist(), texts.T.tolist()


def last_of(sample: Sample, keys: set[int]) -> int:
    return next((label.str for label in reversed(sample.label) if label.key in keys), 0)


@settings(max_examples=150, derandomize=True)
@given(messages)
def test_of_any_samples(drawn: list[Sample]) -> None:
    runs, pieces, told, values, texts = read([sample.SerializeToString() for sample in drawn])
    assert runs == [b"".join(_VarintBytes(i) for i in sample.location_id) for sample in drawn]
    assert not any(pieces)
    assert told == [len(sample.value) for sample in drawn]
    assert values == [[value[i] if i < len(value) else 0 for i in (2, 0)] for value in (s.value for s in drawn)]
    assert texts == [[last_of(sample, KINDS), last_of(sample, DEVICES)] for sample in drawn]


def test_numbers_that_are_not_packed_or_come_in_runs() -> None:
    one, two = Sample(location_id=[7], value=[1, 300]), Sample(location_id=[8], value=[-1])
    plain = b"\x08\x07\x10\x01\x10\xac\x02"
    assert Sample.FromString(plain) == one
    runs = one.SerializeToString() + two.SerializeToString()
    found = read([plain, runs, b""])
    assert found[1:4] == ([True, True, False], [2, 3, 0], [[0, 1], [-1, 1], [0, 0]])
    assert found[0][2] == b""


@pytest.mark.parametrize("data", [b"\x12\x05\x01", b"\x12\x01\x80", b"\x1a\x02\x08\x80", b"\x1a\x01\x0b", b"\x13"])
def test_bytes_that_are_no_sample(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a valid sample at byte 4 of"):
        read([b"\x0a\x02\x01\x05", data])
