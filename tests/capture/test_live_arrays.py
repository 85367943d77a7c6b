"""Events that track() writes into a running profile, read back by our reader and by XProf."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.xplane.allocator.lifetimes import DTYPES

jax = pytest.importorskip("jax")
jnp = jax.numpy

from tb_memplugin.capture.allocator_events import DATA_TYPES, creating_line  # noqa: E402  # it imports jax
from tb_memplugin.capture.live_arrays import Tracker, track  # noqa: E402

STEPS = 5
SHAPE, BYTES = (96, 128), 96 * 128 * 4


@contextmanager
def profiled(folder: Path) -> Iterator[None]:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        yield


def recordings(folder: Path) -> dict[str, Recording]:
    (path,) = folder.rglob("*.xplane.pb")
    parts = open_file(path.read_bytes(), str(path))
    return {r.memory: r for part in parts if part.kind == "allocator" for r in part.read()}


def live_arrays(folder: Path) -> Recording:
    return recordings(folder)[f"cpu:{jax.devices()[0].id} live arrays"]


def loop(folder: Path, keep: Callable[[Any], Any]) -> Recording:
    step = jax.jit(lambda x: x + 1)
    x = jnp.zeros(SHAPE)
    with profiled(folder), track(interval=None) as tracker:
        kept = []
        for number in range(STEPS):
            with tracker.step(number):
                y = step(x)
                kept.append(keep(y))
    return live_arrays(folder)


def at_step_ends(recording: Recording) -> list[int]:
    """Return the bytes in use at the end of each step."""
    assert recording.reported is not None and recording.clock is not None and recording.spans is not None
    ends = np.sort(recording.spans.end_ns[recording.spans.kind == int(SpanKind.STEP)])
    assert len(ends) == STEPS
    in_use: list[int] = recording.reported.in_use[np.searchsorted(recording.clock, ends) - 1].tolist()
    return in_use


def test_a_leak_grows_by_what_it_keeps_of_each_step(tmp_path: Path) -> None:
    assert set(np.diff(at_step_ends(loop(tmp_path, lambda y: y)))) == {BYTES}


def test_mended_every_step_ends_as_the_one_before(tmp_path: Path) -> None:
    recording = loop(tmp_path, lambda y: y.shape)
    assert set(np.diff(at_step_ends(recording))) == {0}
    assert recording.reported is not None
    # The order of events within one poll must not create a peak: the old and the new result are never live together.
    assert recording.reported_peak == max(at_step_ends(recording))


def test_an_array_comes_back_with_size_shape_dtype_and_the_line_that_made_it(tmp_path: Path) -> None:
    with profiled(tmp_path), track(interval=None) as tracker:
        made = jnp.ones((3, 5, 7), jnp.bfloat16)
        tracker.mark()
        line = creating_line(made)
        made.delete()
    rows = live_arrays(tmp_path).allocations
    (row,) = [i for i in range(len(rows.size)) if rows.shape[i] == "(3, 5, 7)"]
    assert (rows.dtype[row], rows.requested[row], rows.name[row]) == ("bf16", 3 * 5 * 7 * 2, line)
    source = Path(__file__).read_text().splitlines()
    assert line.startswith("test_live_arrays.py:") and "jnp.ones((3, 5, 7)" in source[int(line.split(":")[1]) - 1]
    assert rows.end[row] < live_arrays(tmp_path).length, "a deleted array is a free, though the object lives"


def test_what_lived_before_is_told_first_and_a_donated_array_is_a_free(tmp_path: Path) -> None:
    x = jnp.zeros(SHAPE)
    with profiled(tmp_path), track(interval=None) as tracker:
        tracker.mark()
        y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    recording = live_arrays(tmp_path)
    rows = recording.allocations
    shapes = [i for i in range(len(rows.size)) if rows.shape[i] == str(SHAPE)]
    assert y.shape == SHAPE and x.is_deleted()
    assert [rows.start[i] < recording.length for i in shapes] == [True, True]
    assert sum(rows.end[i] == recording.length for i in shapes) == 1
    assert not recording.caveats


def test_state_that_is_donated_in_a_loop_is_one_allocation(tmp_path: Path) -> None:
    step = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.zeros(SHAPE)
    addresses = set()
    with profiled(tmp_path), track(interval=None) as tracker:
        for number in range(STEPS):
            with tracker.step(number):
                x = step(x)
            addresses.add(x.unsafe_buffer_pointer())
    recording = live_arrays(tmp_path)
    rows = recording.allocations
    (first, rest) = [i for i in range(len(rows.size)) if rows.shape[i] == str(SHAPE)]
    assert len(addresses) == 1
    assert rows.name[first] != rows.name[rest]
    assert (rows.end[first], rows.end[rest]) == (rows.start[rest] - 1, recording.length)


def test_arrays_that_share_a_buffer_count_once(tmp_path: Path) -> None:
    x = jnp.zeros(SHAPE)
    with profiled(tmp_path), track(interval=None) as tracker:
        alias = jax.device_put(x, jax.devices()[0])
        assert alias is not x and alias.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        tracker.mark()
        del x
        tracker.mark()
    rows = live_arrays(tmp_path).allocations
    assert [rows.shape[i] for i in range(len(rows.size))].count(str(SHAPE)) == 1


SHARDED = """
import sys, jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from tb_memplugin.capture import track

mesh = jax.make_mesh((2,), ("data",))
with jax.profiler.trace(sys.argv[1]), track(interval=None) as tracker:
    split = jax.device_put(jnp.zeros((8, 4)), NamedSharding(mesh, PartitionSpec("data")))
    tracker.mark()
    tracker.mark()  # now the shards are live arrays too
    both = jax.jit(lambda x: x + 1, donate_argnums=0)(split)
    tracker.mark()
    shard = both.addressable_shards[1].data
    del both  # the shard stays, and its device's buffer with it
    tracker.mark()
    del shard
"""

NO_POINTERS = "from tb_memplugin.capture import live_arrays\nlive_arrays._pointer = lambda array: None\n"


@pytest.mark.parametrize("pointers", [True, False])
def test_a_sharded_array_is_an_allocation_on_each_device(tmp_path: Path, pointers: bool) -> None:
    code = SHARDED if pointers else NO_POINTERS + SHARDED
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ | flags)
    for device in range(2):
        recording = recordings(tmp_path)[f"cpu:{device} live arrays"]
        rows = recording.allocations
        shards = [i for i in range(len(rows.size)) if rows.shape[i] == "(4, 4)"]
        # XLA writes the same sharding with None for the axis that is not sharded.
        assert {rows.op[i].replace("None", "").replace(" ", "") for i in shards} == {"P('data',)of(8,4)"}
        assert [rows.size[i] for i in shards] == [64, 64]
        assert all(rows.end[i] < recording.length for i in shards)
        assert not recording.caveats


def test_backends_that_tell_no_address_get_unique_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_memplugin.capture.live_arrays.address", lambda array: None)
    recording = loop(tmp_path, lambda y: y)
    assert not recording.caveats
    assert set(np.diff(at_step_ends(recording))) == {BYTES}
    rows = recording.allocations
    order = np.argsort(rows.offset)
    assert (rows.offset[order][1:] >= (rows.offset + rows.size)[order][:-1]).all()


def test_the_devices_own_counters_are_an_allocator_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"bytes_in_use": 700, "peak_bytes_in_use": 900, "bytes_limit": 1000, "bytes_reserved": 100}
    told["largest_free_block_bytes"] = 150
    monkeypatch.setattr(
        "tb_memplugin.capture.live_arrays.memory_stats", lambda device: dict(told) if device.id == 0 else None
    )
    with profiled(tmp_path), track(interval=None) as tracker:
        tracker.mark()  # nothing new: nothing written
        told["bytes_in_use"] = 300
    counters = recordings(tmp_path)["cpu:0 memory_stats"]
    assert counters.reported is not None
    assert counters.reported.in_use.tolist() == [700, 300]
    assert counters.reported.free.tolist() == [200, 600]
    assert counters.reported.fragmentation.tolist() == [0.25, 0.75]
    assert (counters.reported_peak, counters.capacity) == (900, 1000)


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    with profiled(tmp_path), track(interval=0.001) as tracker:
        x = jnp.zeros(SHAPE)
        with tracker.step(0):
            gone = weakref.ref(x)
        del x
        tracker.mark()  # waits until the other thread finishes its poll
        gc.collect()
        assert gone() is None


def test_between_marks_a_thread_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, look = threading.Event(), Tracker.mark

    def told(tracker: Tracker) -> None:
        look(tracker)
        looked.set()

    monkeypatch.setattr(Tracker, "mark", told)
    with profiled(tmp_path), track(interval=0.001):
        passing = jnp.zeros((2, 3, 4, 5))
        for _ in range(2):  # one poll may have been in progress
            looked.clear()
            assert looked.wait(timeout=60)
        passing.delete()
    rows = live_arrays(tmp_path).allocations
    assert "(2, 3, 4, 5)" in [rows.shape[i] for i in range(len(rows.size))]


def test_without_a_profile_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("looked without a profile")

    monkeypatch.setattr(jax, "live_arrays", never)
    with track(interval=0.001) as tracker, tracker.step(0):
        tracker.mark()


def test_a_profile_that_starts_later_is_told_all_that_lives(tmp_path: Path) -> None:
    x = jnp.zeros(SHAPE)
    with track(interval=None) as tracker:
        for session in ("first", "second"):
            with profiled(tmp_path / session):
                tracker.mark()
            tracker.mark()
            rows = live_arrays(tmp_path / session).allocations
            assert str(x.shape) in [rows.shape[i] for i in range(len(rows.size))]


def test_dtypes_are_numbered_as_the_reader_numbers_them() -> None:
    names = {"float": "f", "int": "s", "uint": "u", "complex": "c"}
    for dtype, number in DATA_TYPES.items():
        kind = dtype.rstrip("0123456789")
        short = {"bool": "pred", "bfloat16": "bf16"}.get(dtype) or names[kind] + dtype.removeprefix(kind)
        assert DTYPES[number] == short


def test_xprof_reads_it(tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    recording = loop(tmp_path, lambda y: y)
    (path,) = tmp_path.rglob("*.xplane.pb")
    answer, _ = convert.xspace_to_tool_data([str(path)], "memory_profile", {})
    theirs = json.loads(answer)["memoryProfilePerAllocator"][recording.memory]
    assert int(theirs["profileSummary"]["peakBytesUsageLifetime"]) == recording.reported_peak
    told = [snapshot["activityMetadata"] for snapshot in theirs["memoryProfileSnapshots"]]
    (line,) = {t["tfOpName"].split(":")[0] for t in told if (t["tensorShape"], t["dataType"]) == (str(SHAPE), "float")}
    assert line == "test_live_arrays.py"
