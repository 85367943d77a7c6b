"""Shapes: text, unpadded size, and the numbering of nested tuples' nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.native.hlo.shape_types import XlaLayout, XlaShape
from tb_memplugin.native.hlo.shapes import parse_shape
from tb_memplugin.readers.common.budget import ReadBudget

TUPLE = 13
NO_CHILDREN: list[int] = []
POINTER_BYTES = 8  # per element: a tuple is a table of pointers
NODE_BYTES = 160  # lists and columns
DISTINCT_BYTES = 400  # of a shape, with its text
COMBINED_DIMENSION = -(2**63)  # in a tile: all of the remaining dimension

# XLA's PrimitiveType: number -> name in shape text, and bits per element unless the layout sets them.
PRIMITIVES: dict[int, tuple[str, int]] = {
    1: ("pred", 8), 30: ("s1", 1), 26: ("s2", 2), 21: ("s4", 4), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32),
    5: ("s64", 64), 31: ("u1", 1), 27: ("u2", 2), 22: ("u4", 4), 6: ("u8", 8), 7: ("u16", 16), 8: ("u32", 32),
    9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 16: ("bf16", 16), 12: ("f64", 64), 19: ("f8e5m2", 8),
    28: ("f8e4m3", 8), 20: ("f8e4m3fn", 8), 23: ("f8e4m3b11fnuz", 8), 29: ("f8e3m4", 8), 24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8), 32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8), 15: ("c64", 64), 18: ("c128", 128),
    TUPLE: ("tuple", 0), 14: ("opaque", 0), 17: ("token", 0), 34: ("buffer", 0),
}  # fmt: skip


def dtype_name(shape: XlaShape) -> str:
    return PRIMITIVES.get(shape.element_type, (f"type{shape.element_type}", 0))[0]


def unpadded_bytes(shape: XlaShape) -> int:
    """Return the bytes of the elements, without tiling and alignment."""
    if shape.element_type == TUPLE:
        return POINTER_BYTES * len(shape.tuple_shapes)
    bits = shape.layout.element_size_in_bits or PRIMITIVES.get(shape.element_type, ("", 0))[1]
    elements = math.prod(max(dimension, 0) for dimension in shape.dimensions)
    return min((elements * bits + 7) // 8, 2**62)  # a hostile shape must not overflow a column


def padded_bytes(shape: XlaShape) -> int:
    """Return the bytes of an array with those that fill up its tiles, which a TPU reads and writes too."""
    layout = shape.layout
    if not layout.tiles or len(layout.minor_to_major) != len(shape.dimensions):
        return unpadded_bytes(shape)
    dimensions = list(shape.dimensions)
    for dimension, tile in zip(layout.minor_to_major, reversed(layout.tiles[0]), strict=False):
        if 0 <= dimension < len(dimensions) and tile > 0:
            dimensions[dimension] += -dimensions[dimension] % tile
    return unpadded_bytes(shape._replace(dimensions=tuple(dimensions)))


def elements_of(shape: XlaShape) -> int:
    """Return the number of elements of an array; 0 for a tuple."""
    if shape.tuple_shapes:
        return 0
    return min(math.prod(shape.dimensions), 2**62) if min(shape.dimensions, default=0) >= 0 else 0


def parsed(serialized: bytes) -> XlaShape:
    """Parse a shape; a damaged one has no type and no bytes."""
    try:
        return parse_shape(serialized)
    except ValueError:
        return XlaShape()


def shape_text(shape: XlaShape) -> str:
    """Format a shape as XLA prints it, with layout: `f32[4096,4096]{1,0:T(8,128)}`."""
    if shape.element_type == TUPLE:
        return "(" + ", ".join(shape_text(element) for element in shape.tuple_shapes) + ")"
    return _array_text(shape)


@lru_cache(maxsize=4096)  # the tuples of a program repeat the same few arrays
def _array_text(shape: XlaShape) -> str:
    dynamic = list(shape.is_dynamic_dimension)
    dynamic += [False] * (len(shape.dimensions) - len(dynamic))
    dimensions = ",".join(f"<={d}" if flag else str(d) for d, flag in zip(shape.dimensions, dynamic, strict=False))
    return f"{dtype_name(shape)}[{dimensions}]{layout_text(shape.layout)}"


def layout_text(layout: XlaLayout) -> str:
    extras = ""
    if layout.tiles:
        extras += "T" + "".join(
            "(" + ",".join("*" if d == COMBINED_DIMENSION else str(d) for d in tile) + ")" for tile in layout.tiles
        )
    if layout.tail_padding_alignment_in_elements > 1:
        extras += f"L({layout.tail_padding_alignment_in_elements})"
    if layout.element_size_in_bits:
        extras += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        extras += f"S({layout.memory_space})"
    order = ",".join(map(str, layout.minor_to_major))
    if not order and not extras:
        return ""  # a scalar
    return "{" + order + (":" + extras if extras else "") + "}"


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTable:
    """Distinct shapes, each as a preorder list of nodes: the shape itself, the nodes of its first element, and so on.

    A node is identified by a shape index: {1, 0} of a tuple is element 0 of its element 1.
    """

    begin: I32  # per shape: its first node
    count: I32  # per shape: the number of its nodes
    distinct: list[XlaShape]  # as the tuples of a program repeat the same few arrays
    kind: I32  # per node: its index in `distinct`
    extent: I32  # per node: the number of nodes of its subtree, including itself
    child_begin: I32  # per node: its first entry in `children`
    child_count: I32
    children: I32  # nodes

    @staticmethod
    def parse(serialized_shapes: list[bytes], budget: ReadBudget) -> ShapeTable:
        """Parse serialized shapes; a damaged one becomes a shape without type or bytes."""
        begin, nodes = list[int](), _ShapeNodes(budget)
        for serialized_shape in serialized_shapes:
            begin.append(len(nodes.kind))
            nodes.append(parsed(serialized_shape))
            budget.charge(NODE_BYTES * (len(nodes.kind) - begin[-1]))
        counts = [len(children) for children in nodes.children]
        return ShapeTable(
            begin=np.array(begin, dtype=np.int32),
            count=np.diff([*begin, len(nodes.kind)]).astype(np.int32),
            distinct=nodes.distinct,
            kind=np.array(nodes.kind, dtype=np.int32),
            extent=np.array(nodes.extent, dtype=np.int32),
            child_begin=np.cumsum([0, *counts], dtype=np.int32)[:-1],
            child_count=np.array(counts, dtype=np.int32),
            children=np.array([c for children in nodes.children for c in children], dtype=np.int32),
        )

    def array_bytes(self) -> I64:
        """Return the bytes of each shape's arrays together, with their padding."""
        sizes = np.array([padded_bytes(shape) for shape in self.distinct], dtype=np.int64)
        totals = np.r_[0, np.cumsum(np.where(self.child_count > 0, 0, sizes[self.kind]))]
        found: I64 = totals[self.begin + self.count] - totals[self.begin]
        return found

    def in_space(self, space: int) -> Mask:
        """Return a mask of the shapes with an array in a memory space."""
        is_there = np.array([shape.layout.memory_space == space for shape in self.distinct], dtype=bool)
        totals = np.r_[0, np.cumsum(is_there[self.kind])]
        found: Mask = totals[self.begin + self.count] > totals[self.begin]
        return found

    def child(self, node: I32, index: I64) -> I32:
        """Return element `index` of tuple `node`, -1 where it does not exist or the node is -1."""
        known = (node >= 0) & (index >= 0)
        known[known] &= index[known] < self.child_count[node[known]]
        found = np.full(len(node), -1, dtype=np.int32)
        found[known] = self.children[self.child_begin[node[known]] + index[known]]
        return found


class _ShapeNodes:
    """Nodes of shapes in preorder, and the distinct shapes in order of appearance."""

    def __init__(self, budget: ReadBudget) -> None:
        self._budget = budget
        self._known: dict[XlaShape, int] = {}
        self.distinct: list[XlaShape] = []
        self.kind: list[int] = []  # per node, as are these
        self.extent: list[int] = []
        self.children: list[list[int]] = []

    def append(self, shape: XlaShape) -> None:
        """Append the nodes of a shape. `parse_shape` limits the depth of nesting."""
        first, children = len(self.kind), list[int]()
        self._append_node(shape, children)
        for element in shape.tuple_shapes:
            children.append(len(self.kind))
            if element.tuple_shapes:
                self.append(element)
            else:
                self._append_node(element, NO_CHILDREN)
        self.extent[first] = len(self.kind) - first

    def _append_node(self, shape: XlaShape, children: list[int]) -> None:
        index = self._known.setdefault(shape, len(self.distinct))
        if index == len(self.distinct):
            # A shape nested 100 deep is kept in 100 lengths. Its text is as long again.
            self._budget.charge(DISTINCT_BYTES + 4 * shape.nbytes)
            self.distinct.append(shape)
        self.kind.append(index)
        self.children.append(children)
        self.extent.append(1)
