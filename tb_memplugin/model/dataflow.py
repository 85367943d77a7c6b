"""What a compiled program's instructions hand on to each other: its values, who reads them, and what becomes of them.

Part of the model, beside recording: it too knows no file format. A value is what a logical buffer holds. It is one
value however often it is passed on: what reads a bitcast, a tuple's element or a call's argument reads the value
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]


class Likeness(IntEnum):
    """How one value comes of another, element by element."""

    ELEMENTWISE = 0  # each element of the one comes of one element of the other
    IN_PLACE = 1  # the same, where a part was written over
    PART = 2  # each element is one of the other, but not all are there, or more are


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Pairs of values: `target` comes of `source`, element by element, in `steps` operations, none of them a copy."""

    source: I32
    target: I32
    steps: I32
    kind: U8  # Likeness


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """n values over all memory spaces of a program, its arguments and its results. Positions are of its schedule."""

    shape: I32  # per value: equal numbers are equal dimensions and types, whatever the layout
    elements: I64
    floating: U8  # 1: real or complex numbers, which a derivative can be of
    made: I32  # the position of the instruction that makes it; -1 where that is not in the schedule
    use_begin: I64  # n + 1: value v is read at the positions use[use_begin[v]:use_begin[v + 1]], rising
    use: I32
    carried: tuple[I32, I32]  # (from, to): what goes into a loop or branch, and what it is there and afterwards
    bundled: tuple[I32, I32]  # (from, to): what one instruction makes of which, where it does several things at once
    argument: I32  # per value: the leaf of the program's arguments that it is, counted in order; -1 none
    result: I32  # per leaf of the program's result, in order: its value; -1 where that is not known
    donor: I32  # per leaf of the result: the argument's leaf whose memory it is given; -1 none
    alike: Alike

    def __len__(self) -> int:
        return len(self.made)

    @property
    def nbytes(self) -> int:
        columns = [getattr(self, name) for name in self.__slots__ if name != "alike"]
        columns += [getattr(self.alike, name) for name in self.alike.__slots__]
        return sum(array.nbytes for c in columns for array in (c if isinstance(c, tuple) else (c,)))

    @property
    def read(self) -> I32:
        """The value that is read, for each entry of `use`."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.use_begin))


T = TypeVar("T")


class Later(Generic[T]):
    """Works a thing out when it is first asked for, and keeps it; what it is worked out from is then let go."""

    def __init__(self, work: Callable[[], T], holds: int = 0) -> None:
        """`holds`: bytes that `work` keeps in memory."""
        self._lock = Lock()
        self._work: Callable[[], T] | None = work
        self._found: list[T] = []
        self._holds = holds

    def __call__(self) -> T:
        with self._lock:
            if self._work is not None:
                self._found, self._work = [self._work()], None
            return self._found[0]

    @property
    def nbytes(self) -> int:
        """About what is held in memory: what the thing is worked out from, or the thing."""
        return sum(getattr(found, "nbytes", 0) for found in self._found) if self._work is None else self._holds
