"""Types of the arrays that columns are, sums of groups of them, and shapes as XLA prints them: `f32[4,512]{1,0}`."""

import re

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ARRAY = re.compile(r"\w+\[(\d[\d,]{0,200})\]")
MAX_DIGITS = 15  # of a dimension; a longer number is damage


def dimensions(shape: str) -> list[int]:
    """Return the dimensions of an array's shape; none for a scalar or a tuple."""
    found = ARRAY.match(shape)
    return [int(number) for number in found[1].split(",") if 0 < len(number) <= MAX_DIGITS] if found else []


def marked(count: int, which: npt.NDArray[np.integer]) -> Mask:
    """Return a mask of `count` rows, values or nodes in which `which` are marked."""
    found = np.zeros(count, dtype=bool)
    found[which] = True
    return found


def largest_per(group: npt.NDArray[np.integer], values: npt.NDArray[np.integer], groups: int, least: int = 0) -> I64:
    """Return the largest value of each group, and at least `least`, which groups without a value have."""
    found = np.full(groups, least, dtype=np.int64)
    np.maximum.at(found, group, values)
    return found


def smallest_per(group: npt.NDArray[np.integer], values: npt.NDArray[np.integer], groups: int, most: int) -> I64:
    """Return the smallest value of each group, and at most `most`, which groups without a value have."""
    found = np.full(groups, most, dtype=np.int64)
    np.minimum.at(found, group, values)
    return found


def take_or_missing(table: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]) -> I32:
    """Return table[rows], with -1 for row -1."""
    if not len(table):
        return np.full(len(rows), -1, dtype=np.int32)
    return np.where(rows >= 0, table[rows], -1).astype(np.int32)


def concatenate_ranges(first: npt.NDArray[np.integer], count: npt.NDArray[np.integer]) -> I64:
    """Return the ranges first[i], ..., first[i] + count[i] - 1, one after the other."""
    ends = np.cumsum(count, dtype=np.int64)
    found: I64 = np.arange(int(count.sum(dtype=np.int64))) + np.repeat(first - ends + count, count)
    return found


def sum_over_time(length: int, start: I64, end: I64, amount: I64) -> I64:
    """Return the sum at each position of the amounts that last from `start` until before `end`."""
    # bincount sums in float64, which is exact up to 2**53 bytes (8 PiB).
    change = np.bincount(np.clip(start, 0, length), amount, length + 1)
    change -= np.bincount(np.clip(end, 0, length), amount, length + 1)
    return np.cumsum(change[:length]).astype(np.int64)


def connected_components(n: int, left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]) -> I32:
    """Return, per item, the smallest item that any chain of pairs connects it to."""
    label = np.arange(n, dtype=np.int32)
    while True:
        low = np.minimum(label[left], label[right])
        before = label.copy()
        np.minimum.at(label, left, low)
        np.minimum.at(label, right, low)
        label = label[label]
        if np.array_equal(label, before):
            return label
