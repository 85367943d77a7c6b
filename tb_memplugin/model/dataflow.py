"""Values of a compiled program: which instruction produces each, which ones use it, and which are derived from it.

A value is the content of a logical buffer. An instruction that uses a bitcast, an element of a tuple or an argument
of a call uses the value itself.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.text import Text


class Derivation(IntEnum):
    """Kind of relation between the elements of one value and those of another that it is computed from."""

    ELEMENTWISE = 0  # each element from one element of the other
    IN_PLACE = 1  # the same, but a part was overwritten
    PART = 2  # each element from one element of the other, but some are missing or there are more of them


@dataclass(frozen=True, slots=True, eq=False)
class Derivations:
    """Pairs of values: `target` is computed from `source` element by element in `steps` operations besides copies."""

    source: I32
    target: I32
    steps: I32
    kind: U8  # Derivation


class ProductKind(IntEnum):
    """Kind of an operation that combines two values of different shapes."""

    PRODUCT = 0  # a matrix product or a convolution, or a library's or kernel's call, which may be one
    LOOKUP = 1  # of rows of the left side by the indices on the right


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Products of two sides, each computed from one value or several. Two tables: of products, and of their values."""

    position: I32  # per product: its instruction, or the fusion that contains it
    kind: U8  # per product: ProductKind
    product: I32  # per value of a side: the product's number
    value: I32
    side: U8  # 0: left; 1: right

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, slots=True, eq=False)
class DataflowValues:
    """n values in all memory spaces of a program, its arguments and its results. Positions are those of its schedule.

    Each of the two tuples of columns is a list of pairs of values, (from, to).
    """

    shape: I32  # per value: equal numbers are equal dimensions and types, whatever the layout
    elements: I64
    floating: U8  # 1: real or complex numbers, which can have a derivative
    producer: I32  # position of the instruction that produces it; -1 if that is not in the schedule
    use_begin: I64  # n + 1: value v is used at the positions use[use_begin[v]:use_begin[v + 1]], rising
    use: I32
    loop_carried: tuple[I32, I32]  # from what enters a loop or branch, to the value inside and after it
    bundled: tuple[I32, I32]  # from operand to result, for instructions whose results have different operands
    argument: I32  # per value: its number among the leaves of the program's arguments; -1 none
    result: I32  # per leaf of the program's result, in order: its value; -1 unknown
    donor: I32  # per leaf of the result: the argument leaf whose memory it reuses; -1 none
    derivations: Derivations
    products: Products
    op_name: Text  # per value: JAX's name of the operation that computes it
    transposed: I32  # values that an operation computes that JAX named `transpose(`, inside a fusion too

    def __len__(self) -> int:
        return len(self.producer)

    @property
    def used_value(self) -> I32:
        """Return the value that is used, per entry of `use`."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.use_begin))
