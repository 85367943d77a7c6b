"""Shapes: their text, their bytes without padding, and how the nodes of nested tuples are numbered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tb_memplugin.protos.hlo_pb2 import LayoutProto, ShapeProto

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

TUPLE = 13
NO_CHILDREN: list[int] = []
POINTER_BYTES = 8  # a tuple is a table of pointers to its elements
COMBINED_DIMENSION = -(2**63)  # in a tile: as large as it needs to be

# XLA's PrimitiveType: number -> name in shape text, bits an element takes when nothing says otherwise.
PRIMITIVES: dict[int, tuple[str, int]] = {
    1: ("pred", 8), 30: ("s1", 1), 26: ("s2", 2), 21: ("s4", 4), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32),
    5: ("s64", 64), 31: ("u1", 1), 27: ("u2", 2), 22: ("u4", 4), 6: ("u8", 8), 7: ("u16", 16), 8: ("u32", 32),
    9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 16: ("bf16", 16), 12: ("f64", 64), 19: ("f8e5m2", 8),
    28: ("f8e4m3", 8), 20: ("f8e4m3fn", 8), 23: ("f8e4m3b11fnuz", 8), 29: ("f8e3m4", 8), 24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8), 32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8), 15: ("c64", 64), 18: ("c128", 128),
    TUPLE: ("tuple", 0), 14: ("opaque", 0), 17: ("token", 0), 34: ("buffer", 0),
}  # fmt: skip


def dtype(shape: ShapeProto) -> str:
    return PRIMITIVES.get(shape.element_type, (f"type{shape.element_type}", 0))[0]


def unpadded_bytes(shape: ShapeProto) -> int:
    """Bytes of the elements alone: no tiling, no alignment."""
    if shape.element_type == TUPLE:
        return POINTER_BYTES * len(shape.tuple_shapes)
    bits = shape.layout.element_size_in_bits or PRIMITIVES.get(shape.element_type, ("", 0))[1]
    elements = 1
    for dimension in shape.dimensions:
        elements *= max(dimension, 0)
    return min((elements * bits + 7) // 8, 2**62)  # a hostile shape must not overflow a column


def elements_of(shape: ShapeProto) -> int:
    """How many numbers an array holds; 0 of a tuple."""
    if shape.tuple_shapes:
        return 0
    return min(math.prod(shape.dimensions), 2**62) if min(shape.dimensions, default=0) >= 0 else 0


def text(shape: ShapeProto) -> str:
    """As XLA prints it, layout and all: `f32[4096,4096]{1,0:T(8,128)}`."""
    if shape.element_type == TUPLE:
        return "(" + ", ".join(text(element) for element in shape.tuple_shapes) + ")"
    return _array_text(shape.SerializeToString())


@lru_cache(maxsize=4096)  # the elements of a program's tuples are the same few arrays, over and over
def _array_text(serialized: bytes) -> str:
    shape = ShapeProto.FromString(serialized)
    dynamic = list(shape.is_dynamic_dimension)
    dynamic += [False] * (len(shape.dimensions) - len(dynamic))
    dimensions = ",".join(f"<={d}" if flag else str(d) for d, flag in zip(shape.dimensions, dynamic, strict=False))
    return f"{dtype(shape)}[{dimensions}]{layout_text(shape.layout) if shape.HasField('layout') else ''}"


def layout_text(layout: LayoutProto) -> str:
    extras = ""
    if layout.tiles:
        extras += "T" + "".join(
            "(" + ",".join("*" if d == COMBINED_DIMENSION else str(d) for d in tile.dimensions) + ")"
            for tile in layout.tiles
        )
    if layout.tail_padding_alignment_in_elements > 1:
        extras += f"L({layout.tail_padding_alignment_in_elements})"
    if layout.element_size_in_bits:
        extras += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        extras += f"S({layout.memory_space})"
    order = ",".join(map(str, layout.minor_to_major))
    if not order and not extras:
        return ""  # a scalar's layout says nothing
    return "{" + order + (":" + extras if extras else "") + "}"


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTable:
    """Distinct shapes, each a preorder list of nodes: itself, then the nodes of its first element, and so on.

    A buffer is a node: the shape index {1, 0} of a tuple names element 0 of its element 1.
    """

    begin: I32  # per shape: its first node
    count: I32  # per shape: how many nodes
    protos: list[ShapeProto]  # distinct: a program's tuples hold the same few arrays over and over
    kind: I32  # per node: which of them it is
    extent: I32  # per node: itself and all nodes below it
    child_begin: I32  # per node: its first entry in `children`
    child_count: I32
    children: I32  # nodes

    @staticmethod
    def parse(pieces: list[bytes]) -> ShapeTable:
        """From serialized ShapeProtos; one that is damaged becomes a shape of no type and no bytes."""
        begin, nodes, distinct = [], list[int](), _Distinct()
        child_lists: list[list[int]] = []
        extents: list[int] = []
        for piece in pieces:
            shape = ShapeProto()
            try:
                shape.ParseFromString(piece)
            except Exception:  # protobuf's DecodeError; its class differs between implementations
                shape = ShapeProto()
            begin.append(len(nodes))
            _number(shape, distinct, nodes, child_lists, extents)
        ends = [*begin[1:], len(nodes)]
        counts = [len(children) for children in child_lists]
        return ShapeTable(
            begin=np.array(begin, dtype=np.int32),
            count=np.array([e - b for b, e in zip(begin, ends, strict=True)], dtype=np.int32),
            protos=distinct.protos,
            kind=np.array(nodes, dtype=np.int32),
            extent=np.array(extents, dtype=np.int32),
            child_begin=np.cumsum([0, *counts], dtype=np.int32)[:-1],
            child_count=np.array(counts, dtype=np.int32),
            children=np.array([c for children in child_lists for c in children], dtype=np.int32),
        )

    def child(self, node: I32, index: I64) -> I32:
        """Element `index` of tuple `node`, -1 where there is none or the node is -1."""
        known = (node >= 0) & (index >= 0)
        known[known] &= index[known] < self.child_count[node[known]]
        found = np.full(len(node), -1, dtype=np.int32)
        found[known] = self.children[self.child_begin[node[known]] + index[known]]
        return found


class _Distinct:
    """Shapes as they come, each once."""

    def __init__(self) -> None:
        self.protos: list[ShapeProto] = []
        self._known: dict[bytes, int] = {}

    def number(self, shape: ShapeProto) -> int:
        number = self._known.setdefault(shape.SerializeToString(), len(self.protos))
        if number == len(self.protos):
            self.protos.append(shape)
        return number


def _number(
    shape: ShapeProto, distinct: _Distinct, nodes: list[int], child_lists: list[list[int]], extents: list[int]
) -> None:
    """Append the shape's nodes in preorder. Protobuf itself bounds how deep a message nests."""
    first = len(nodes)
    children: list[int] = []
    nodes.append(distinct.number(shape))
    child_lists.append(children)
    extents.append(0)
    for element in shape.tuple_shapes:
        children.append(len(nodes))
        if element.tuple_shapes:
            _number(element, distinct, nodes, child_lists, extents)
        else:
            nodes.append(distinct.number(element))
            child_lists.append(NO_CHILDREN)
            extents.append(1)
    extents[first] = len(nodes) - first
