"""Shapes as XLA prints them: `f32[4096,4096]{1,0:T(8,128)S(1)}`."""

import re
from functools import lru_cache

from tb_memplugin.native.hlo.shape_types import MAX_DEPTH
from tb_memplugin.protos.hlo_pb2 import ShapeProto
from tb_memplugin.readers.hlo.module.shapes import COMBINED_DIMENSION, PRIMITIVES, TUPLE

TYPES = {name: number for number, (name, _) in PRIMITIVES.items()}
TOKEN = re.compile(r"(\()|(\))|([a-z]\w{0,20})\[([^\[\]]*)\](?:\{([^{}]*)\})?|(token|opaque)")
LAYOUT = re.compile(r"T((?:\([\d,*]*\))+)|([LES])\((\d{1,18})\)")
MAX_DIMENSION = 2**62


@lru_cache(maxsize=4096)  # a program has few distinct shapes
def parse_shape(text: str) -> bytes:
    """Return a serialized ShapeProto; one without a type where the text is no shape."""
    open_tuples = [ShapeProto()]
    for found in TOKEN.finditer(text):
        begins, ends, dtype, dimensions, layout, other = found.groups()
        if ends:
            if len(open_tuples) > 1:
                open_tuples.pop()
            continue
        if len(open_tuples) > MAX_DEPTH:
            return b""
        shape = open_tuples[-1].tuple_shapes.add()
        if begins:
            shape.element_type = TUPLE
            open_tuples.append(shape)
        else:
            _set_array(shape, dtype or other, dimensions or "", layout or "")
    shapes = open_tuples[0].tuple_shapes
    return shapes[0].SerializeToString() if shapes else b""


def _set_array(shape: ShapeProto, dtype: str, dimensions: str, layout: str) -> None:
    shape.element_type = TYPES.get(dtype, 0)
    for dimension in filter(None, dimensions.split(",")):
        size = dimension.removeprefix("<=")
        shape.dimensions.append(_number(size))
        shape.is_dynamic_dimension.append(size != dimension)
    if not any(shape.is_dynamic_dimension):
        del shape.is_dynamic_dimension[:]
    order, _, extras = layout.partition(":")
    shape.layout.minor_to_major.extend(_number(dimension) for dimension in filter(None, order.split(",")))
    for tiles, kind, value in LAYOUT.findall(extras):
        for tile in tiles[1:-1].split(")(") if tiles else ():
            sizes = [COMBINED_DIMENSION if size == "*" else _number(size) for size in filter(None, tile.split(","))]
            shape.layout.tiles.add().dimensions.extend(sizes)
        if kind == "L":
            shape.layout.tail_padding_alignment_in_elements = int(value)
        elif kind == "E":
            shape.layout.element_size_in_bits = int(value)
        elif kind == "S":
            shape.layout.memory_space = int(value)


def _number(text: str) -> int:
    """Return a dimension; 0 for one that is none."""
    return min(int(text), MAX_DIMENSION) if text.isdecimal() and text.isascii() and len(text) < 20 else 0
