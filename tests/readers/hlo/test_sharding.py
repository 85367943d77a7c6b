"""Replication counts of a partitioned program's arguments, from shardings as XLA writes them."""

from __future__ import annotations

import pytest
from support.hand_built import MIB, Handmade, read

from tb_memplugin.model.program import Program
from tb_memplugin.protos.hlo_pb2 import OpSharding

REPLICATED, ONE_DEVICE, TILED, MANUAL = 0, 1, 3, 4


def program(*shardings: OpSharding, devices: int = 8) -> Program:
    made = Handmade()
    for number in range(max(len(shardings), 1)):
        argument = made.instruction(f"x{number}", opcode="parameter")
        made.allocation((made.buffer(argument, MIB), 0), size=MIB).is_entry_computation_parameter = True
    made.proto.hlo_module.spmd_parameters_shardings.extend(shardings)
    made.proto.hlo_module.device_assignment.replica_count = 1
    made.proto.hlo_module.device_assignment.computation_count = devices
    found = read(made).program
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sharding", "copies"),
    [
        (OpSharding(type=REPLICATED), 8),
        (OpSharding(type=TILED, tile_assignment_dimensions=[8, 1]), 1),
        (OpSharding(type=TILED, tile_assignment_dimensions=[4, 1, 2], replicate_on_last_tile_dim=True), 2),
        (OpSharding(type=TILED, tile_assignment_dimensions=[2, 4], last_tile_dims=[REPLICATED]), 4),
        (OpSharding(type=TILED, tile_assignment_dimensions=[2, 2, 2], last_tile_dims=[REPLICATED, MANUAL]), 2),
        (OpSharding(type=ONE_DEVICE), 1),
        (OpSharding(type=TILED), 1),
        (OpSharding(type=TILED, tile_assignment_dimensions=[-3, 2**62], replicate_on_last_tile_dim=True), 8),
    ],
)
def test_how_many_devices_hold_the_same(sharding: OpSharding, copies: int) -> None:
    found = program(sharding, OpSharding(type=REPLICATED))
    assert found.devices == 8
    assert found.shardings is not None
    assert found.shardings.copies.tolist() == [copies, 8]


def test_a_program_for_one_device_repeats_nothing() -> None:
    assert program(OpSharding(type=REPLICATED), devices=1).shardings is None


def test_a_program_without_shardings_says_nothing() -> None:
    assert program().shardings is None


def named(*dimensions: list[int], axes: tuple[tuple[str, int], ...] = (("data", 2), ("model", 4))) -> OpSharding:
    """Return a sharding as JAX 0.12 writes it: `dimensions` has the numbers of the mesh axes that split each."""
    made = OpSharding()
    for name, size in axes:
        made.named_sharding.mesh.axes.add(name=name.encode(), size=size)
    for numbers in dimensions:
        of_dimension = made.named_sharding.dim_shardings.add()
        for number in numbers:
            of_dimension.axes.add(mesh_axis_index=number)
    return made


def test_named_shardings_and_the_axes_that_replicate() -> None:
    everywhere = OpSharding()
    everywhere.named_sharding.mesh.SetInParent()
    found = program(named([0], []), named([], [1]), named([0, 1]), named([]), everywhere, named([7], [-1])).shardings
    assert found is not None
    assert found.copies.tolist() == [4, 2, 1, 8, 8, 8]
    free = [[axis.name for axis in found.named[code].free_axes] for code in found.code]
    both = ["data", "model"]
    assert free == [["model"], ["data"], [], both, both, both]


def test_a_part_of_an_axis_splits_by_its_own_size() -> None:
    half = named([1])
    half.named_sharding.dim_shardings[0].axes[0].sub_axis_info.size = 2
    found = program(half).shardings
    assert found is not None
    assert found.copies.tolist() == [4]


@pytest.mark.parametrize("size", [-1, 2**62])
def test_a_damaged_mesh(size: int) -> None:
    found = program(named([0], [1], axes=(("data", size), ("model", size)))).shardings
    assert found is not None
    assert 1 <= found.copies[0] <= 8


@pytest.mark.parametrize("devices", [-5, 2**62])
def test_a_damaged_file_s_number_of_devices(devices: int) -> None:
    assert 1 <= program(OpSharding(type=REPLICATED), devices=devices).devices <= 2**24
