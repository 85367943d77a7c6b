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
    assert found.copies is not None
    assert found.copies.tolist() == [copies, 8]


def test_a_program_for_one_device_repeats_nothing() -> None:
    assert program(OpSharding(type=REPLICATED), devices=1).copies is None


def test_a_program_without_shardings_says_nothing() -> None:
    assert program().copies is None


@pytest.mark.parametrize("devices", [-5, 2**62])
def test_a_damaged_file_s_number_of_devices(devices: int) -> None:
    assert 1 <= program(OpSharding(type=REPLICATED), devices=devices).devices <= 2**24
