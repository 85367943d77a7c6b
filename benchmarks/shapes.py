"""Shapes in TPU layouts: the two minor dimensions are padded to whole tiles."""

from dataclasses import dataclass
from math import prod
from random import Random

from tb_memplugin.protos import hlo_pb2

F32, BF16, TUPLE = 11, 16, 13  # xla.PrimitiveType
WIDTHS = {F32: 4, BF16: 2}  # bytes of an element
TILES = {F32: ((8, 128),), BF16: ((8, 128), (2, 1))}
POINTER_SIZE = 8


@dataclass(frozen=True, slots=True)
class Shape:
    element_type: int
    dimensions: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the bytes with padding."""
        if len(self.dimensions) < 2:
            return self.unpadded
        *major, rows, columns = self.dimensions
        return prod(major) * -(-rows // 8) * 8 * -(-columns // 128) * 128 * WIDTHS[self.element_type]

    @property
    def unpadded(self) -> int:
        return prod(self.dimensions) * WIDTHS[self.element_type]

    def proto(self) -> hlo_pb2.ShapeProto:
        rank = len(self.dimensions)
        tiles = TILES[self.element_type] if rank > 1 else ()
        return hlo_pb2.ShapeProto(
            element_type=self.element_type,
            dimensions=self.dimensions,
            is_dynamic_dimension=[False] * rank,
            layout=hlo_pb2.LayoutProto(
                minor_to_major=range(rank - 1, -1, -1),
                tiles=[hlo_pb2.TileProto(dimensions=tile) for tile in tiles],
            ),
        )


SCALAR = Shape(F32, ())
WEIGHTS = tuple(Shape(F32, dimensions) for dimensions in ((512, 1536), (512, 512), (512, 2048), (2048, 512)))

AXES = ((1, 4, 8, 16, 32), (8, 100, 128, 512, 2048), (64, 129, 256, 512, 1024))


def activations(rng: Random, count: int = 200) -> list[Shape]:
    """Return distinct shapes, few as in a real program. Some fill their tiles; some are mostly padding."""
    found: dict[Shape, None] = {}
    while len(found) < count:
        dimensions = tuple(rng.choice(axis) for axis in AXES)
        found[Shape(rng.choice((F32, BF16)), dimensions[rng.randrange(2) :])] = None
    return list(found)


def tuple_proto(elements: list[Shape]) -> hlo_pb2.ShapeProto:
    return hlo_pb2.ShapeProto(element_type=TUPLE, tuple_shapes=[shape.proto() for shape in elements])
