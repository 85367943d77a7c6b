from __future__ import annotations

import pytest
from support.advised import MIB, given, kinds
from support.hand_built import F32, Handmade, read

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.analysis.advice.jax.shapes import ragged_dimensions
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import LayoutProto, ShapeProto, TileProto

ROWS, TILE = 2**14, 128


def tiled(columns: int) -> ShapeProto:
    """Use a TPU's array layout: tiles of 8 by 128."""
    layout = LayoutProto(minor_to_major=[1, 0], tiles=[TileProto(dimensions=[8, TILE])])
    return ShapeProto(element_type=F32, dimensions=[ROWS, columns], layout=layout)


def program(columns: int) -> Recording:
    """Return a program that reads an argument and one temporary of the same shape."""
    made, placed = Handmade(), -(-columns // TILE) * TILE * ROWS * 4
    argument = made.instruction("x", shape=tiled(columns), opcode="parameter")
    doubled = made.instruction("doubled", [argument], shape=tiled(columns))
    made.instruction("last", [argument, doubled])
    held = made.allocation((made.buffer(argument, placed), 0), size=placed)
    held.is_entry_computation_parameter = True
    made.allocation((made.buffer(doubled, placed), 0), size=placed)
    return read(made)


def test_129_columns_take_the_place_of_256() -> None:
    advice = given(program(129), AdviceKind.PADDING)
    whole = 16 * MIB
    assert advice.title == f"Padding of f32[{ROWS},129]"
    assert advice.bytes == 2 * (whole - ROWS * 129 * 4)
    assert advice.saving_bytes == advice.saving.before - whole == whole  # 128 columns take half of what 256 take
    assert advice.change == "dimension 1 is 129, and the tiles have 128: make it 128"
    assert sorted(advice.rows.tolist()) == [0, 1]


@pytest.mark.parametrize("columns", [20, 100, 200])
def test_dimensions_far_from_full_tiles_stay_as_they_are(columns: int) -> None:
    assert AdviceKind.PADDING not in kinds(program(columns))


@pytest.mark.parametrize("columns", [128, 256])
def test_full_tiles_waste_nothing(columns: int) -> None:
    assert AdviceKind.PADDING not in kinds(program(columns))


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ("f32[4096,129]{1,0:T(8,128)}", [(1, 129, 128)]),
        ("bf16[3,100,256]{2,1,0:T(8,128)(2,1)}", [(1, 100, 8)]),
        ("f32[129,5]{0,1:T(8,128)}", [(0, 129, 128), (1, 5, 8)]),
        ("f32[4096,128]{1,0:T(8,128)}", []),
        ("f32[4096,129]{1,0}", []),
        ("f32[]", []),
        ("f32[4]{7:T(128)}", []),  # the layout of a damaged file
        ("", []),
    ],
)
def test_which_dimensions_do_not_fill_their_tiles(shape: str, found: list[tuple[int, int, int]]) -> None:
    assert [tuple(one) for one in ragged_dimensions(shape)] == found
