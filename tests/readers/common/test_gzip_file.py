"""Decompression of gzip files, compared with Python's own."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.budget import CHUNK_BYTES, INPUT_BYTES, ReadBudget, decompress

same_each_time = settings(derandomize=True)
# Of sizes around those of the pieces that are read and written, of bytes that shrink to nothing or not at all.
SIZES = [0, 1, INPUT_BYTES - 20, INPUT_BYTES, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]


def content(data: bytes) -> bytes:
    return bytes(decompress(data, ReadBudget(data, "a.gz")))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dense", [True, False], ids=["random", "zeros"])
def test_one_member(size: int, dense: bool) -> None:
    expected = random.Random(size).randbytes(size) if dense else bytes(size)
    assert content(gzip.compress(expected, 1, mtime=0)) == expected


@same_each_time
@given(st.lists(st.tuples(st.binary(max_size=50), st.integers(0, 3)), min_size=1, max_size=5))
def test_members_one_after_the_other_with_padding(members: list[tuple[bytes, int]]) -> None:
    packed = b"".join(gzip.compress(text, mtime=0) + bytes(padding) for text, padding in members)
    assert content(packed) == gzip.decompress(packed)


def test_a_thousand_members_across_pieces() -> None:
    parts = [b"%d," % number * 9 for number in range(1000)]
    assert content(b"".join(gzip.compress(part, mtime=0) for part in parts)) == b"".join(parts)


PACKED = gzip.compress(b"contents " * 100, mtime=0)


@pytest.mark.parametrize("length", range(2, len(PACKED)))
def test_a_file_cut_short_is_refused(length: int) -> None:
    with pytest.raises(InputError, match="ended before"):
        content(PACKED[:length])


@pytest.mark.parametrize("position", range(-8, 0))
def test_a_wrong_checksum_or_length_is_refused(position: int) -> None:
    damaged = bytearray(PACKED)
    damaged[position] ^= 1
    with pytest.raises(InputError, match="damaged gzip file"):
        content(bytes(damaged))


def test_bytes_after_the_end_that_are_no_member_are_refused() -> None:
    with pytest.raises(InputError, match="damaged gzip file"):
        content(PACKED + b"rest")
