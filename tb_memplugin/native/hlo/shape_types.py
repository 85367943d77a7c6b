"""Shapes of XLA's values, as `shapes` parses them."""

from __future__ import annotations

from typing import NamedTuple

MAX_DEPTH = 100  # of nested tuples; protobuf has the same limit


class XlaLayout(NamedTuple):
    """The order and tiles of an array's elements in memory."""

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()  # the dimensions of each
    element_size_in_bits: int = 0  # 0: the type's own
    memory_space: int = 0
    tail_padding_alignment_in_elements: int = 0


class XlaShape(NamedTuple):
    """An array, or a tuple of shapes. A damaged shape has no type."""

    element_type: int = 0  # XLA's PrimitiveType
    dimensions: tuple[int, ...] = ()
    tuple_shapes: tuple[XlaShape, ...] = ()
    layout: XlaLayout = XlaLayout()
    is_dynamic_dimension: tuple[bool, ...] = ()
    nbytes: int = 0  # of the message
