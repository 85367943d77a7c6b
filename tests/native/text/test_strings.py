"""The compiled loops over text, against plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.native.text.strings import Interner, gather, intern, join

DATA = b"fusion fusion copy.1 \xff\x00\xfe fusion"
spans = st.lists(st.tuples(st.integers(0, len(DATA)), st.integers(0, 8)), max_size=12)
texts = st.lists(st.binary(max_size=5), min_size=1, max_size=5)
same_each_time = settings(derandomize=True)


def columns(pieces: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, list[bytes]]:
    kept = [(start, min(length, len(DATA) - start)) for start, length in pieces]
    array = np.array(kept, dtype=np.int64).reshape(-1, 2)
    starts, lengths = (np.ascontiguousarray(column) for column in array.T)
    return starts, lengths, [DATA[start : start + length] for start, length in kept]


@same_each_time
@given(spans)
def test_equal_bytes_get_one_code_in_order_of_appearance(pieces: list[tuple[int, int]]) -> None:
    start, length, words = columns(pieces)
    codes, first = intern(DATA, start, length)
    distinct = [word for word in dict.fromkeys(words) if word]
    assert codes.tolist() == [distinct.index(word) if word else -1 for word in words]
    assert first.tolist() == [words.index(word) for word in distinct]


def test_thousands_of_texts_over_several_calls() -> None:
    """More than the table of texts has room for at first. The texts have up to 40 bytes, and some differ in one."""
    random = np.random.default_rng(0)
    data = bytes(random.integers(97, 99, 20_000, np.uint8))
    start, length = random.integers(0, len(data) - 40, 30_000), random.integers(0, 41, 30_000)
    words = [data[s : s + n] for s, n in zip(start.tolist(), length.tolist(), strict=True)]
    known: dict[bytes, int] = {b"": -1}
    expected = [known.setdefault(word, len(known) - 1) for word in words]
    interner, codes, new = Interner(data), [], []
    for begin in range(0, len(words), 7_001):
        code, first = interner.add(start[begin : begin + 7_001], length[begin : begin + 7_001])
        codes += code.tolist()
        new += [begin + row for row in first.tolist()]
    assert codes == expected
    assert [words[row] for row in new] == [word for word in known if word]


@same_each_time
@given(spans)
def test_gathered_pieces_lie_end_to_end(pieces: list[tuple[int, int]]) -> None:
    start, length, words = columns(pieces)
    blob, offsets = gather(DATA, start, length)
    assert blob == b"".join(words)
    assert offsets.tolist() == [len(b"".join(words[:i])) for i in range(len(words) + 1)]


@same_each_time
@given(texts, texts, st.data())
def test_joined_texts_are_left_then_right(left: list[bytes], right: list[bytes], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(-1, len(left) - 1), st.integers(-1, len(right) - 1)), max_size=9))
    codes = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    blob, offsets = join(
        b"".join(left), np.cumsum([0, *map(len, left)]), np.ascontiguousarray(codes[:, 0]),
        b"".join(right), np.cumsum([0, *map(len, right)]), np.ascontiguousarray(codes[:, 1]),
    )  # fmt: skip
    words = [(left[a] if a >= 0 else b"") + (right[b] if b >= 0 else b"") for a, b in pairs]
    assert [blob[a:b] for a, b in pairwise(offsets)] == words
    assert blob == b"".join(words)


def test_nothing_of_nothing() -> None:
    none = np.empty(0, dtype=np.int64)
    codes, first = intern(b"", none, none)
    assert not len(codes)
    assert not len(first)
    assert gather(b"", none, none)[0] == b""


@same_each_time
@given(spans, spans)
def test_codes_go_on_from_one_call_to_the_next(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    interner = Interner(DATA)
    found = [interner.add(*columns(pieces)[:2]) for pieces in (before, after)]
    start, length, _ = columns(before + after)
    codes, first = intern(DATA, start, length)
    assert [*found[0][0], *found[1][0]] == codes.tolist()
    assert [*found[0][1], *(found[1][1] + len(before))] == first.tolist()
