"""Named intervals of a profile: steps, executions and annotations, on the host and on the device."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from support.allocator_planes import REAL, Log, recordings_of
from support.host_threads import Host, Span, spans
from support.servers import DATA

from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace
from tb_memplugin.readers import open_file

TPU = DATA / "xplane" / "xprof_tpu_inference_2_old"


def test_groups_are_steps_where_no_step_is_marked() -> None:
    host = Host().add("a", 10, 20, group_id=0).add("b", 15, 18, group_id=1).add("b", 40, 44, group_id=2)
    host.add("c", 30, 42, group_id=0).add("d", 50, 60)
    assert spans(host.read(), SpanKind.STEP) == [("step 0", 10, 42), ("step 2", 40, 44)], "1 is within 0"
    marked = host.add("train", 5, 70, step_num=7, group_id=3)
    assert spans(marked.read(), SpanKind.STEP) == [("train 7", 5, 70)]


def test_groups_that_follow_each_other_are_the_steps_of_the_analysis() -> None:
    host = Host()
    for number in range(6):
        host.add("op", 10 * number, 10 * number + 4, group_id=number)
        host.add("op", 10 * number + 6, 10 * number + 8, group_id=number)
    found = steps(host.read())
    assert (found.unit, found.marked, len(found.position)) == ("step", True, 6)


def test_a_call_that_is_marked_twice_is_one() -> None:
    host = Host()
    host.add("PjitFunction(f)", 10, 40)
    key = max(host.plane.event_metadata)
    host.plane.lines[0].events.add(metadata_id=key, offset_ps=11_000, duration_ps=20_000)
    host.add("PjitFunction(g)", 50, 90)
    host.plane.lines[0].events.add(metadata_id=key, offset_ps=60_000, duration_ps=20_000)
    assert spans(host.read(), SpanKind.EXECUTION) == [("f", 10, 40), ("g", 50, 90), ("f", 60, 80)]


def test_tensorflow_s_groups_are_its_steps() -> None:
    path = next((path for path in REAL if path.parents[3].name == "xprof_demo_gpu_multi_worker"), None)
    if path is None:
        pytest.skip("the profiles beside the repository are not there")
    (plane,) = (p for p in XSpace.FromString(path.read_bytes()).planes if p.name == b"/host:CPU")
    began = min(line.timestamp_ns for line in plane.lines)
    extent: dict[int, list[int]] = defaultdict(list)
    for line in plane.lines:
        for event in line.events:
            for stat in event.stats:
                if plane.stat_metadata[stat.metadata_id].name == b"group_id":
                    start = (line.timestamp_ns - began) * 1000 + event.offset_ps
                    extent[stat.int64_value] += [start, start + event.duration_ps]
    (first, *others) = sorted((min(ps), max(ps), group) for group, ps in extent.items())
    assert len(others) == 6 and all(end <= first[1] for _, end, _ in others)
    for recording in recordings_of(path).values():
        assert spans(recording, SpanKind.STEP) == [("step 0", first[0] // 1000, first[1] // 1000)]


def modules(plane: XPlane, began: int) -> list[Span]:
    """Return the executions of a device's plane, read by protobuf; `began` is the host's clock."""
    return [
        (
            plane.event_metadata[event.metadata_id].name.decode(),
            line.timestamp_ns - began + event.offset_ps // 1000,
            line.timestamp_ns - began + (event.offset_ps + event.duration_ps) // 1000,
        )
        for line in plane.lines
        if line.name == b"XLA Modules"
        for event in line.events
    ]


@pytest.mark.skipif(not TPU.is_dir(), reason="the profiles beside the repository are not there")
def test_a_tpu_core_s_executions_are_those_of_its_own_plane() -> None:
    (path,) = TPU.rglob("*.xplane.pb")
    space = XSpace.FromString(path.read_bytes())
    (host,) = (plane for plane in space.planes if plane.name == b"/host:CPU")
    began = min(line.timestamp_ns for line in host.lines)
    recordings = listing_of_path(str(TPU)).recordings
    titles = {recording.title for recording in recordings if recording.kind == "program"}
    counts = {}
    for recording in (r for r in recordings if r.kind == "allocator"):
        name = recording.memory.replace("TPU core ", "/device:TPU:").encode()
        (device,) = (plane for plane in space.planes if plane.name == name)
        found = spans(recording, SpanKind.EXECUTION)
        assert sorted(found) == sorted(modules(device, began))
        assert {name for name, _, _ in found} <= titles
        assert "_psum" in {name for name, _, _ in spans(recording, SpanKind.ANNOTATION)}, "the host's call of it"
        counts[recording.memory] = len(found)
    assert counts == {"TPU core 0": 105, "TPU core 1": 103, "TPU core 2": 103, "TPU core 3": 103}


def of_core(device: bytes) -> Recording:
    """Return a TPU core's recording and the plane of its device, from the given bytes."""
    log = Log().line(timestamp_ns=1000)
    log.add(False, 7000, index_on_host=2, addr=1, allocation_bytes=8, bytes_allocated=8)
    log.plane.event_metadata[2].name = b"PjitFunction(f)"
    log.plane.lines[0].events.add(metadata_id=2, offset_ps=5000, duration_ps=9000)
    # Field 1 of a profile holds its planes; lengths here take one or two bytes.
    size = bytes([len(device) & 0x7F | 0x80, len(device) >> 7]) if len(device) > 127 else bytes([len(device)])
    data = XSpace(planes=[log.plane]).SerializeToString() + b"\x0a" + size + device
    (recording,) = (r for part in open_file(data, "/x.xplane.pb") if part.kind == "allocator" for r in part.read())
    assert recording.memory == "TPU core 2"
    return recording


def device_plane() -> XPlane:
    plane = XPlane(name=b"/device:TPU:2")
    for key, name in {1: b"jit_f(5)", 2: b"%fusion = f32[4]"}.items():
        plane.event_metadata[key].name = name
    for name, key in ((b"XLA Ops", 2), (b"XLA Modules", 1)):
        line = plane.lines.add(name=name, timestamp_ns=1002)
        line.events.add(metadata_id=key, offset_ps=6000, duration_ps=4000)
        line.events.add(metadata_id=key, offset_ps=20_000)
    return plane


def test_a_core_s_own_executions_make_calls_annotations() -> None:
    recording = of_core(device_plane().SerializeToString())
    assert spans(recording, SpanKind.EXECUTION) == [("jit_f(5)", 8, 12)]
    assert spans(recording, SpanKind.ANNOTATION) == [("f", 5, 14)]
    assert recording.spans is not None and len(recording.spans.name.strings) <= 3


def test_a_damaged_device_costs_its_executions_alone() -> None:
    plane = bytearray(device_plane().SerializeToString())
    event = plane.index(b"\x22", plane.index(b"XLA Modules"))
    plane[event + 1] = 0x7F  # its length ends after the line
    recording = of_core(bytes(plane))
    assert [caveat.code for caveat in recording.caveats][-1] == "device_damaged"
    assert spans(recording, SpanKind.EXECUTION) == [("f", 5, 14)]


def test_another_core_s_executions_are_not_this_one_s(tmp_path: Path) -> None:
    plane = device_plane()
    plane.name = b"/device:TPU:3"
    assert spans(of_core(plane.SerializeToString()), SpanKind.EXECUTION) == [("f", 5, 14)]
