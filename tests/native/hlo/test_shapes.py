"""Parsed shapes, against protobuf's own parser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from support.profiles import compiled_programs

from tb_memplugin.native.hlo.shape_types import XlaLayout, XlaShape
from tb_memplugin.native.hlo.shapes import parse_shape
from tb_memplugin.protos.hlo_pb2 import HloProto, LayoutProto, ShapeProto, TileProto

NUMBER = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.lists(NUMBER, max_size=4)
LAYOUTS = st.builds(
    LayoutProto,
    minor_to_major=NUMBERS,
    tiles=st.lists(st.builds(TileProto, dimensions=NUMBERS), max_size=3),
    element_size_in_bits=NUMBER,
    memory_space=NUMBER,
    tail_padding_alignment_in_elements=NUMBER,
)
ARRAYS = st.builds(
    ShapeProto,
    element_type=st.integers(-(2**31), 2**31 - 1),
    dimensions=NUMBERS,
    layout=st.none() | LAYOUTS,
    is_dynamic_dimension=st.lists(st.booleans(), max_size=4),
)
SHAPES = st.recursive(
    ARRAYS, lambda inner: st.builds(ShapeProto, element_type=st.just(13), tuple_shapes=st.lists(inner, max_size=4))
)


def expected(proto: ShapeProto) -> XlaShape:
    layout = proto.layout
    return XlaShape(
        proto.element_type,
        tuple(proto.dimensions),
        tuple(expected(inner) for inner in proto.tuple_shapes),
        XlaLayout(
            tuple(layout.minor_to_major),
            tuple(tuple(tile.dimensions) for tile in layout.tiles),
            layout.element_size_in_bits,
            layout.memory_space,
            layout.tail_padding_alignment_in_elements,
        ),
        tuple(proto.is_dynamic_dimension),
        proto.ByteSize(),
    )


def serialized_shapes() -> Iterator[bytes]:
    for program in compiled_programs():
        for computation in HloProto.FromString(program.data).hlo_module.computations:
            yield from (instruction.shape for instruction in computation.instructions)


def test_shapes_of_real_programs() -> None:
    distinct = set(serialized_shapes())
    assert len(distinct) > 50
    for serialized in distinct:
        assert parse_shape(serialized) == expected(ShapeProto.FromString(serialized))


@given(SHAPES)
def test_any_shape(proto: ShapeProto) -> None:
    assert parse_shape(proto.SerializeToString()) == expected(proto)


@given(SHAPES, st.data())
def test_the_end_is_missing(proto: ShapeProto, data: st.DataObject) -> None:
    whole = proto.SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        known = expected(ShapeProto.FromString(cut))
    except DecodeError:
        with pytest.raises(ValueError, match="damaged"):
            parse_shape(cut)
    else:
        assert parse_shape(cut) == known


@given(LAYOUTS, LAYOUTS)
def test_a_layout_in_two_parts(first: LayoutProto, second: LayoutProto) -> None:
    serialized = ShapeProto(layout=first).SerializeToString() + ShapeProto(layout=second).SerializeToString()
    assert parse_shape(serialized).layout == expected(ShapeProto.FromString(serialized)).layout


def test_numbers_one_by_one() -> None:
    dimensions = b"".join(bytes([3 << 3, number]) for number in (5, 0, 7))
    assert parse_shape(dimensions).dimensions == tuple(ShapeProto.FromString(dimensions).dimensions) == (5, 0, 7)


@pytest.mark.parametrize(("depth", "known"), [(99, True), (300, False)])
def test_nesting(depth: int, known: bool) -> None:
    serialized = b""
    for _ in range(depth):  # the length of what is inside has one byte or two
        length = len(serialized)
        serialized = (
            b"\x22" + (bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])) + serialized
        )
    if known:
        assert parse_shape(serialized) == expected(ShapeProto.FromString(serialized))
    else:
        with pytest.raises(ValueError, match="deep"):
            parse_shape(serialized)
