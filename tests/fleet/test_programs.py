"""Devices of hosts without measured ones, from the plans of their programs."""

from __future__ import annotations

from tb_memplugin.fleet.summarize import with_programs
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse

SMALL, LARGE = (ProgramUse(f"jit_{name}", f"jit_{name}(1)", name) for name in ("small", "large"))
KNOWN = {name: ProgramSummary(name, "HBM", size, size + 1, 100) for name, size in (("small", 5), ("large", 9))}
MEASURED = DeviceSummary("TPU core 0", "HBM", True, 50)


def file(name: str, host: str, *programs: ProgramUse, devices: tuple[DeviceSummary, ...] = ()) -> FileSummary:
    return FileSummary(f"/log/{name}", 1, "1-1", host, "run", devices, programs)


def peaks(*files: FileSummary) -> list[tuple[int, bool]]:
    found = with_programs(files, KNOWN)
    return [(device.peak_bytes, device.measured) for each in found for device in each.devices]


def test_a_host_has_its_largest_program_in_whichever_file() -> None:
    assert peaks(file("1", "a", SMALL), file("2", "a", LARGE), file("3", "b", SMALL)) == [(9, False), (5, False)]


def test_a_host_with_measured_devices_has_no_planned_one() -> None:
    assert peaks(file("1", "a", LARGE), file("2", "a", devices=(MEASURED,))) == [(50, True)]


def test_a_program_that_cannot_be_read_is_no_device() -> None:
    unknown = ProgramUse("jit_x", "jit_x(1)", "x")
    (found,) = with_programs([file("1", "a", unknown)], {"x": ProgramSummary("x", problem="damaged")})
    assert not found.devices and found.programs[0].problem == "damaged"
