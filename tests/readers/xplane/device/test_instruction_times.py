"""Measured times of instructions, from events of TPUs, GPUs and CPUs, and the speed of a profile's device."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.profiles import profiles

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import ACCELERATORS, speed_of_gpu
from tb_memplugin.protos.xplane_pb2 import XLine, XPlane, XSpace
from tb_memplugin.readers.xplane import open_xplane
from tb_memplugin.readers.xplane.instruction_times import instruction_times

PROGRAM_ID, HLO_OP, HLO_MODULE = 1, 2, 3
MS = 10**9  # picoseconds


def named(plane: XPlane, names: dict[int, bytes]) -> None:
    for key, name in names.items():
        plane.stat_metadata[key].name = name


def tpu(space: XSpace, name: bytes, runs: dict[bytes, list[int]], other: int = 0) -> XPlane:
    """Add a TPU that ran instructions of program 7, and one of program 8, for these times in ms."""
    plane = space.planes.add(name=name)
    named(plane, {PROGRAM_ID: b"program_id"})
    line: XLine = plane.lines.add(name=b"XLA Ops")
    beside: XLine = plane.lines.add(name=b"Async XLA Ops")
    for key, (instruction, times) in enumerate({**runs, b"of_another": [other]}.items(), 1):
        event = plane.event_metadata[key]
        event.name = b"%" + instruction + b" = f32[8]{0} add(f32[8]{0} %a)"
        if key % 2:  # some profilers give the name beside the text
            event.display_name = instruction
        event.stats.add(metadata_id=PROGRAM_ID, uint64_value=8 if instruction == b"of_another" else 7)
        for time in times:
            line.events.add(metadata_id=key, duration_ps=time * MS)
            beside.events.add(metadata_id=key, duration_ps=1000 * MS)
    return plane


def gpu(space: XSpace, name: bytes, module: bytes = b"jit_step") -> XPlane:
    plane = space.planes.add(name=name)
    names = {PROGRAM_ID: b"program_id", HLO_OP: b"hlo_op", HLO_MODULE: b"hlo_module", 10: b"fusion.1", 11: module}
    named(plane, names)
    line = plane.lines.add(name=b"Stream #1")
    for number in (7, 7, 8):
        event = line.events.add(metadata_id=1, duration_ps=2 * MS)
        event.stats.add(metadata_id=HLO_OP, ref_value=10)
        event.stats.add(metadata_id=HLO_MODULE, ref_value=11)
        event.stats.add(metadata_id=PROGRAM_ID, int64_value=number)
    line.events.add(metadata_id=1, duration_ps=50 * MS)  # a kernel of no instruction
    return plane


def found(space: XSpace, key: str = "jit_step(7)") -> dict[str, tuple[int, float]]:
    """Return the runs of each instruction, and their time in ms."""
    times = instruction_times(space.SerializeToString(), key, "a.xplane.pb")
    seconds = [round(1e3 * float(each), 6) for each in times.seconds]
    return {name: (int(times.runs[row]), seconds[row]) for row, name in enumerate(times.name.tolist())}


def test_runs_on_tpus_are_added_up_by_program() -> None:
    space = XSpace()
    tpu(space, b"/device:TPU:0", {b"fusion.1": [2, 2], b"copy.3": [1]})
    tpu(space, b"/device:TPU:1", {b"fusion.1": [6]}, other=9)
    times = instruction_times(space.SerializeToString(), "jit_step(7)", "")
    rows = [times.name.tolist().index(name) for name in ("fusion.1", "copy.3")]
    assert len(times.name) == 2 and times.devices == ("TPU core 0", "TPU core 1")
    assert times.runs[rows].tolist() == [3, 1] and times.seconds[rows].tolist() == pytest.approx([0.010, 0.001])
    assert times.slowest[rows].tolist() == pytest.approx([0.006, 0.001])
    assert times.fastest[rows].tolist() == pytest.approx([0.002, 0.001])
    assert found(space, "jit_other(8)") == {"of_another": (2, 9.0)}
    assert found(space, "jit_step(9)") == {}


def test_kernels_of_gpus_name_instruction_and_program() -> None:
    space = XSpace()
    gpu(space, b"/host:CPU")  # the thread that launched them
    gpu(space, b"/device:GPU:0")
    assert found(space) == {"fusion.1": (2, 4.0)}
    assert found(space, "jit_step(8)") == {"fusion.1": (1, 2.0)}
    assert found(space, "jit_loss(7)") == {}


def test_kernels_of_a_graph_have_their_own_names() -> None:
    space = XSpace()
    plane = gpu(space, b"/device:GPU:0")
    plane.stat_metadata[12].name = b"command_buffer_3"
    plane.event_metadata[2].name = b"loop_add_fusion_4"
    event = plane.lines[0].events.add(metadata_id=2, duration_ps=3 * MS)
    event.stats.add(metadata_id=HLO_OP, ref_value=12)
    event.stats.add(metadata_id=HLO_MODULE, ref_value=11)
    event.stats.add(metadata_id=PROGRAM_ID, int64_value=7)
    assert found(space) == {"fusion.1": (2, 4.0), "loop_add_fusion_4": (1, 3.0)}


def test_without_devices_the_times_are_those_of_the_cpus_threads() -> None:
    space = XSpace()
    gpu(space, b"/host:CPU")
    assert found(space) == {"fusion.1": (2, 4.0)}


def plainly(path: Path, module: str, number: int) -> dict[str, tuple[int, float]]:
    """Add up the events of a profile one by one."""
    planes = XSpace.FromString(path.read_bytes()).planes
    devices = [plane for plane in planes if plane.name.startswith((b"/device:TPU:", b"/device:GPU:"))]
    summed: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for plane in devices or [plane for plane in planes if plane.name == b"/host:CPU"]:
        names = {key: value.name.decode("utf-8", "replace") for key, value in plane.stat_metadata.items()}

        def stats(of: Any, names: dict[int, str] = names) -> dict[str, Any]:
            return {
                names[stat.metadata_id]: names.get(stat.ref_value) or stat.int64_value or stat.uint64_value
                for stat in of.stats
                if stat.metadata_id in names
            }

        is_tpu = b"TPU" in plane.name
        for line in plane.lines:
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                known = stats(metadata) if is_tpu else stats(event)
                own = line.name == b"XLA Ops" if is_tpu else known.get("hlo_module") == module
                if own and known.get("program_id", 0) % 2**64 == number and (is_tpu or "hlo_op" in known):
                    name = metadata.display_name.decode() if is_tpu else str(known["hlo_op"])
                    summed[name][0] += 1
                    summed[name][1] += event.duration_ps / 1e12
    return {name: (int(runs), seconds) for name, (runs, seconds) in summed.items()}


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parts[-5])
def test_every_profile_has_the_times_that_its_events_add_up_to(path: Path) -> None:
    data = path.read_bytes()
    for part in open_xplane(data, str(path)):
        if part.content is None:
            continue
        times = instruction_times(data, part.title, str(path))
        module, _, number = part.title.partition("(")
        expected = plainly(path, module, int(number.partition(")")[0]))
        assert set(times.name.tolist()) == set(expected)
        for row, name in enumerate(times.name.tolist()):
            runs, seconds = expected[name]
            assert int(times.runs[row]) == runs and times.seconds[row] == pytest.approx(seconds, abs=1e-12)


def test_a_damaged_profile_is_an_error() -> None:
    plane = gpu(XSpace(), b"/device:GPU:0").SerializeToString()
    broken = XSpace(planes=[XPlane.FromString(plane)]).SerializeToString()[:-3]
    with pytest.raises(InputError, match="damaged"):
        instruction_times(broken, "jit_step(7)", "a.xplane.pb")


@pytest.mark.parametrize("name", ["a100", "a100-80", "h100", "h200", "b200"])
def test_a_gpu_of_the_table_is_known_by_its_drivers_figures(name: str) -> None:
    chip = ACCELERATORS[name]
    assert not isinstance(chip, tuple) or hasattr(chip, "core_count")
    figures = (chip.compute_capability, chip.core_count, 1e9 * chip.clock_rate_ghz)  # type: ignore[union-attr]
    assert speed_of_gpu(*figures, 1.02 * chip.memory_bandwidth) == chip.speed  # type: ignore[union-attr]


def test_another_gpu_has_the_speed_of_its_cores() -> None:
    v100 = speed_of_gpu((7, 0), 80, 1.53e9, 898e9)
    assert v100 is not None and v100.peak_flops == pytest.approx(125e12, rel=0.01)
    assert speed_of_gpu((6, 0), 56, 1.4e9, 720e9) is None
