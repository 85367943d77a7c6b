"""Reasons why a profile has no allocator events: real CPU profiles, with synthetic devices added."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.allocator_planes import Log
from support.profiles import profiles
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.protos.xplane_pb2 import ProfileOptions, XSpace
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.part import NoEventsReason
from tb_memplugin.readers.xplane import no_events_reason
from tb_memplugin.readers.xplane.planes import read_planes

BUSY, IDLE = True, False


def profile(*devices: tuple[str, bool], level: int | None = 2, device_level: int = 1, host: bool = True) -> XSpace:
    """Return a profile of a busy host and of devices; with `level` None, the requested level is not recorded."""
    space = XSpace()
    if host:
        plane = space.planes.add(name=b"/host:CPU")
        plane.event_metadata[1].name = b"PjitFunction(f)"
        plane.lines.add(name=b"python").events.add(metadata_id=1, duration_ps=5)
    for name, busy in devices:
        line = space.planes.add(name=name.encode()).lines.add(name=b"XLA Ops")
        if busy:
            line.events.add(metadata_id=1, duration_ps=5)
    environment = space.planes.add(name=b"Task Environment")
    environment.stat_metadata[1].name, environment.stat_metadata[2].name = b"profile_start_time", b"profile_options"
    environment.stats.add(metadata_id=1, uint64_value=7)
    if level is not None:
        options = ProfileOptions(host_tracer_level=level, device_tracer_level=device_level)
        environment.stats.add(metadata_id=2, bytes_value=options.SerializeToString())
    return space


def why(space: XSpace) -> NoEventsReason:
    content = space.SerializeToString()
    return no_events_reason(read_planes(content, ReadBudget(content, "space")))


GPU, TPU = "/device:GPU:0", "/device:TPU:3"


@pytest.mark.parametrize(
    ("space", "code"),
    [
        (profile(), "cpu_backend"),
        (profile(level=None), "cpu_backend"),
        (profile(level=0, host=False), "cpu_backend"),
        (profile(("/device:CUSTOM:Megascale Trace", BUSY)), "cpu_backend"),
        (profile((GPU, BUSY), level=1), "tracer_level"),
        (profile((TPU, IDLE), level=0), "tracer_level"),
        (profile((GPU, BUSY), level=None, host=False), "tracer_level"),
        (profile(level=1, device_level=0), "tracer_level"),
        (profile((GPU, IDLE), (TPU, IDLE)), "no_device_work"),
        (profile((GPU, IDLE), level=None), "no_device_work"),
        (profile((GPU, IDLE), (TPU, BUSY)), "no_allocator_events"),
        (profile((GPU, BUSY), level=3), "no_allocator_events"),
        (profile(device_level=0), "no_allocator_events"),
    ],
)
def test_the_reason_that_applies(space: XSpace, code: str) -> None:
    found = why(space)
    assert found.code == code
    assert found.text and "compiled programs" in found.remedy
    assert "{" not in found.text


def test_the_level_is_reported() -> None:
    assert "at level 1;" in why(profile((GPU, BUSY), level=1)).text
    assert "at level 0;" in why(profile((GPU, BUSY), level=None, host=False)).text


def test_unreadable_options_are_ignored() -> None:
    space = profile((GPU, IDLE), level=1)
    next(stat for plane in space.planes for stat in plane.stats if stat.bytes_value).bytes_value = b"\xff\xff"
    assert why(space).code == "no_device_work"


def written(space: bytes, folder: Path, host: str = "host") -> Path:
    session = folder / "plugins/profile/run"
    session.mkdir(parents=True, exist_ok=True)
    (session / f"{host}.xplane.pb").write_bytes(space)
    return folder


def captured(level: int, folder: Path) -> bytes:
    """Return a profile of JAX on this machine's CPU, with the host's tracer at a level."""
    jax = pytest.importorskip("jax")
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level, options.python_tracer_level = level, 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        jax.numpy.ones((8, 8)).sum().block_until_ready()
    (path,) = folder.rglob("*.xplane.pb")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("level", "device", "code"),
    [
        (1, None, "cpu_backend"),
        (0, BUSY, "tracer_level"),
        (1, BUSY, "tracer_level"),
        (2, IDLE, "no_device_work"),
        (2, BUSY, "no_allocator_events"),
    ],
)
def test_what_jax_writes(level: int, device: bool | None, code: str, tmp_path: Path) -> None:
    """Add the device by concatenating two profiles, which protobuf merges into one."""
    data = captured(level, tmp_path / "captured")
    added = XSpace()
    if device is not None:
        line = added.planes.add(name=GPU.encode()).lines.add(name=b"Stream #1")
        if device is BUSY:
            line.events.add(metadata_id=1, duration_ps=5)
    logdir = written(data + added.SerializeToString(), tmp_path / "logdir")
    assert {host: found.code for host, found in listing_of_path(str(logdir)).no_events.items()} == {"host": code}


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_a_profile_with_allocator_events_has_no_reason(path: Path) -> None:
    listing = listing_of_path(str(path))
    if any(recording.kind == "allocator" for recording in listing.recordings):
        assert listing.no_events == {}
    else:
        assert [found.code for found in listing.no_events.values()] == ["cpu_backend"]


def test_each_host_has_its_own_and_the_api_tells_it(tmp_path: Path) -> None:
    session = tmp_path / "plugins/profile/run"
    session.mkdir(parents=True)
    shutil.copy(DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb", session / "static.xplane.pb")
    written(profile((GPU, IDLE)).SerializeToString(), tmp_path, "idle")
    log = Log().add(False, 0, allocator_name="GPU_0_bfc", addr=1, allocation_bytes=8, bytes_allocated=8)
    written(XSpace(planes=[log.plane]).SerializeToString(), tmp_path, "told")
    written(b"no profile", tmp_path, "damaged")
    client = Client(MemoryApp(Catalog(str(tmp_path))))
    answer = client.get("/api/recordings?run=run").json
    assert answer is not None
    assert {host: found["code"] for host, found in answer["empty"].items()} == {
        "static": "cpu_backend",
        "idle": "no_device_work",
    }
    assert set(answer["empty"]["idle"]) == {"code", "text", "remedy"}
    one = client.get("/api/recordings?run=run&host=told").json
    assert one is not None and one["empty"] == {}


def test_two_host_planes_of_which_one_tells(tmp_path: Path) -> None:
    log = Log().add(False, 0, allocator_name="GPU_0_bfc", addr=1, allocation_bytes=8, bytes_allocated=8)
    space = XSpace(planes=[log.plane, *profile((GPU, IDLE)).planes])
    assert listing_of_path(str(written(space.SerializeToString(), tmp_path))).no_events == {}
