"""Limits of plausible sizes and times. A damaged file may contain any number, and a sum of a few would overflow."""

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.sizes import agree, counted

MAX_BYTES = 2**50  # also the limit of counts; no device has a PiB
MAX_DEVICES = 128  # devices of one process, each of which is a recording; real hosts have at most 16
MAX_TIME_US = 2**52  # microseconds since 1970: the year 2112, which in nanoseconds still fits 64 bits


def too_many(what: str, count: int, limit: int, path: str) -> InputError:
    """Return the error for a file with more devices, or the like, than any machine has."""
    return InputError(f"too many {what}: {count:,}", path, f"at most {limit:,} are read; is it damaged? Copy it again")


def is_plausible(column: I64) -> npt.NDArray[np.bool_]:
    """Return a mask of the sizes, or changes of size, between -1 PiB and 1 PiB."""
    return np.asarray((column >= -MAX_BYTES) & (column <= MAX_BYTES))


IS = ("is", "are")
WAS = ("was", "were")
HAS = ("has", "have")


def counted_caveat(
    code: CaveatCode, count: int, noun: str, verbs: tuple[str, str], rest: str, nbytes: int | None = None
) -> list[Caveat]:
    """Return the caveat "3 events are ignored.", or none where `count` is 0.

    The sentence is the count of `noun`, the singular or plural of `verbs`, and `rest`, as in "event", IS, "ignored".
    """
    return [Caveat(code, f"{counted(count, noun)} {agree(count, *verbs)} {rest}.", nbytes)] if count else []


def impossible_bytes(count: int, noun: str, verbs: tuple[str, str], problem: str) -> list[Caveat]:
    """Return one caveat about `count` values, or none where `count` is 0.

    The sentence is the count of `noun`, the singular or plural of `verbs`, and `problem`: how such values are treated.
    """
    rest = f"{problem}. The file is damaged: no memory is that large"
    return counted_caveat(CaveatCode.IMPOSSIBLE_BYTES, count, noun, verbs, rest)
