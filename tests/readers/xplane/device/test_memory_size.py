"""The memory size of a program's device, read from its profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hand_built import MIB, two_halves
from support.servers import DATA

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.accelerators import V6E
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.readers import open_file

HLO, MEMORY_SIZE, OTHER = 1, 2, 3


def profile(devices: dict[bytes, int]) -> XSpace:
    space = XSpace()
    programs = space.planes.add(name=b"/host:metadata")
    programs.stat_metadata[HLO].name = b"Hlo Proto"
    made, first, second = two_halves()
    made.allocation((first, 0), size=3 * MIB)
    made.allocation((second, 0), size=3 * MIB, color=1)
    second.color = 1
    event = programs.event_metadata[1]
    event.id, event.name = 1, b"jit_step(34)"
    event.stats.add(metadata_id=HLO, bytes_value=made.data)
    for name, size in devices.items():
        plane = space.planes.add(name=name)
        plane.stat_metadata[OTHER].name, plane.stat_metadata[MEMORY_SIZE].name = b"core_count", b"memory_size"
        plane.stats.add(metadata_id=OTHER, int64_value=7)
        plane.stats.add(metadata_id=MEMORY_SIZE, uint64_value=size)
    return space


def programs(space: XSpace) -> list[Recording]:
    parts = open_file(space.SerializeToString(), "/logs/host.xplane.pb")
    return [recording for part in parts if part.kind == "program" for recording in part.read()]


@pytest.mark.parametrize(
    ("devices", "capacity"),
    [
        ({}, None),
        ({b"/device:GPU:0": 80_000, b"/device:GPU:1": 40_000}, 40_000),
        ({b"/device:GPU:0": 80_000, b"/device:GPU:1": 0}, 80_000),
        ({b"/device:CUSTOM:x": 5, b"/host:CPU": 6}, None),
        ({b"/device:GPU:0": 2**63 + 1}, None),
    ],
)
def test_the_smallest_device_counts_in_its_own_memory_only(devices: dict[bytes, int], capacity: int | None) -> None:
    assert [(found.memory, found.capacity) for found in programs(profile(devices))] == [
        ("HBM", capacity),
        ("VMEM", None),
    ]


def test_a_damaged_device_costs_a_program_nothing() -> None:
    space = profile({b"/device:GPU:0": 80_000})
    damaged = space.SerializeToString() + b"\x0a\x12\x12\x0d/device:GPU:1\x32\x01\x08"
    parts = [part for part in open_file(damaged, "/logs/host.xplane.pb") if part.kind == "program"]
    assert [found.capacity for part in parts for found in part.read()] == [None, None]


@pytest.mark.skipif(not DATA.is_dir(), reason="the data beside the repository is not here")
def test_a_real_gpu_whose_allocator_may_not_hand_out_all_of_it() -> None:
    listed = listing_of_path(str(DATA / "xplane" / "tracelens_mi300_conv_minimal_08")).recordings
    allocators = {found.capacity for found in listed if found.kind == "allocator"}
    assert {found.capacity for found in listed if found.kind == "program"} == allocators == {154_606_239_744}
    path = Path(listed[0].source)
    of_device = [r.capacity for p in open_file(path.read_bytes(), str(path)) if p.kind == "program" for r in p.read()]
    assert set(of_device) == {206_141_652_992}


@pytest.mark.parametrize("referred", [False, True])
def test_a_tpu_s_plane_names_the_chip(referred: bool) -> None:
    """Check both memories of the program: the HBM that a compiler may use, and the core's VMEM."""
    space = profile({})
    plane = space.planes.add(name=b"/device:TPU:0")
    plane.stat_metadata[OTHER].name, plane.stat_metadata[9].name = b"device_type_string", b"TPU v6 Lite"
    plane.stats.add(metadata_id=OTHER, **({"ref_value": 9} if referred else {"str_value": b"TPU v6 Lite"}))
    found = programs(space)
    assert [one.capacity for one in found] == [V6E.hbm, 128 * MIB]
    assert {one.capacity_source for one in found} == {"the limit of TPU v6e, from the profile"}


def test_an_unknown_tpu_has_no_capacity() -> None:
    space = profile({})
    plane = space.planes.add(name=b"/device:TPU:0")
    plane.stat_metadata[OTHER].name = b"device_type_string"
    plane.stats.add(metadata_id=OTHER, str_value=b"TPU v99")
    assert [one.capacity for one in programs(space)] == [None, None]
