"""Real jobs that are watched: what is in their logdir while they run, and after they were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest
from support.servers import REPOSITORY

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording

pytest.importorskip("jax")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
LOOP = """
import itertools, sys, time
import jax.numpy as jnp
from tb_memplugin import capture

kept = [jnp.ones(1 << 20)]
with capture.watch(sys.argv[1], every=0.05) as watched:
    for number in itertools.count():  # until it is killed, however long the test takes on a busy machine
        watched.step(number)
        kept.append(jnp.ones(1000))
        print(number, flush=True)
        time.sleep(0.01)
"""


@contextmanager
def job(
    logdir: Path, code: str = LOOP, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[str]]:
    """Run a job, and kill it at the end of the block."""
    command = [sys.executable, "-c", textwrap.dedent(code), str(logdir)]
    process = subprocess.Popen(
        command, env={**ENVIRONMENT, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def curves(logdir: Path) -> list[Recording]:
    """Return the curves of devices."""
    found = listing_of_path(str(logdir))
    assert not found.problems
    of_devices = [recording for recording in found.recordings if recording.is_main_memory]
    return [recording for recording in of_devices if recording.kind is RecordingKind.WATCH]


def samples(logdir: Path) -> int:
    files = list(logdir.rglob("*.watch"))
    return sum(recording.length for recording in curves(logdir)) if files else 0


def test_a_killed_job_leaves_its_curve_up_to_the_last_sample(tmp_path: Path) -> None:
    with job(tmp_path) as process:
        wait_for(lambda: samples(tmp_path) > 4)
        [running] = curves(tmp_path)
        assert running.is_live and running.run.startswith("device_profiles/")
        wait_for(lambda: samples(tmp_path) > running.length)  # each sample is in the file at once
        written = samples(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    [recording] = curves(tmp_path)
    assert recording.length >= written and recording.is_live, "nobody could finish the file"
    assert recording.reported is not None and recording.reported.in_use[-1] >= 4 << 20
    assert recording.clock is not None and recording.capture_info is not None and recording.capture_info.time_ns


def test_sigusr1_saves_a_snapshot_beside_the_curve_and_then_calls_the_jobs_own_handler(tmp_path: Path) -> None:
    code = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('own', flush=True))\n" + textwrap.dedent(LOOP)
    with job(tmp_path, code) as process:
        wait_for(lambda: samples(tmp_path) > 1)
        os.kill(process.pid, signal.SIGUSR1)
        wait_for(lambda: bool(list(tmp_path.rglob("*.prof"))))
        os.kill(process.pid, signal.SIGUSR1)  # within a minute: postponed
        before = samples(tmp_path)
        wait_for(lambda: samples(tmp_path) > before + 2)
        assert process.poll() is None
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read().count("own\n") == 2
    found = listing_of_path(str(tmp_path)).recordings
    profiles = [recording for recording in found if recording.kind is RecordingKind.DEVICE_PROFILE]
    [profile], [curve] = profiles, curves(tmp_path)
    assert (profile.run, profile.memory) == (curve.run, curve.memory)
    assert profile.capture_info is not None and profile.capture_info.reason == "signal"
    assert profile.capture_info.step is not None and profile.capture_info.step >= 0
    assert int(profile.allocations.size.sum()) >= 4 << 20


def test_an_out_of_memory_error_ends_the_curve_with_a_profile_and_its_text(tmp_path: Path) -> None:
    code = """
        import sys, time
        import jax, jax.numpy as jnp
        from tb_memplugin import capture
        kept = jnp.ones(1 << 20)
        with capture.watch(sys.argv[1], every=0.05):
            time.sleep(0.2)
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 6291456 bytes.")
    """
    with job(tmp_path, code) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "RESOURCE_EXHAUSTED" in errors and "Device memory was saved to" in errors
    [curve] = curves(tmp_path)
    assert not curve.is_live and curve.spans is not None and curve.spans.name[len(curve.spans) - 1] == "out of memory"
    [profile] = tmp_path.rglob("*.prof")
    [text] = tmp_path.rglob("*.oom.txt")
    assert profile.parent == text.parent == Path(curve.source).parent


def test_a_job_that_ends_without_stop_and_its_forks_leave_one_finished_file(tmp_path: Path) -> None:
    code = """
        import os, sys, time, warnings
        import jax.numpy as jnp
        from tb_memplugin import capture
        warnings.simplefilter("ignore")
        kept = jnp.ones(1 << 20)
        watched = capture.watch(sys.argv[1], every=0.05).start()
        time.sleep(0.2)
        if (child := os.fork()) == 0:
            watched.step(1)
            watched.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        time.sleep(0.2)
    """
    with job(tmp_path, code) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    [curve] = curves(tmp_path)
    assert not curve.is_live and curve.length >= 2
    assert not any(curve.spans.kind.tolist()) if curve.spans is not None else False


def test_a_job_whose_devices_are_not_started_is_left_as_it_is(tmp_path: Path) -> None:
    code = """
        import sys, time
        import jax
        from jax._src import xla_bridge
        from tb_memplugin import capture
        with capture.watch(sys.argv[1], every=0.01):
            time.sleep(0.3)
            assert not xla_bridge.backends_are_initialized()
    """
    with job(tmp_path, code) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert curves(tmp_path) == [], "the host alone"


def test_each_device_has_the_bytes_of_its_shards(tmp_path: Path) -> None:
    code = """
        import sys, time
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import NamedSharding, PartitionSpec
        from tb_memplugin import capture
        mesh = jax.make_mesh((2, 2), ("data", "model"))
        place = lambda array, *axes: jax.device_put(array, NamedSharding(mesh, PartitionSpec(*axes)))
        ones = np.ones((1024, 1024), np.float32)
        kept = place(ones, "data", "model"), place(ones, "data"), place(ones), jax.device_put(ones, jax.devices()[3])
        with capture.watch(sys.argv[1]):
            pass
    """
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    with job(tmp_path, code, flags) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = {curve.memory: curve.reported.in_use[-1] / (1 << 20) for curve in curves(tmp_path) if curve.reported}
    assert found == {"cpu:0": 7, "cpu:1": 7, "cpu:2": 7, "cpu:3": 11}


def test_a_device_that_is_nearly_full_gets_a_profile_with_the_reason(tmp_path: Path) -> None:
    code = """
        import sys, time
        import jax, jax.numpy as jnp
        from tb_memplugin import capture
        from tb_memplugin.capture.watching import counters
        device, in_use = jax.local_devices()[0], iter(range(500, 1000, 50))
        class Gpu:  # no test machine has one
            platform = "gpu"
            def __str__(self): return str(device)
            def memory_stats(self):
                return {"bytes_in_use": next(in_use, 950) << 20, "peak_bytes_in_use": 970 << 20, "bytes_limit": 1 << 30}
        class Jax:
            def __getattr__(self, name): return getattr(jax, name)
            def local_devices(self): return [Gpu()]
        counters.started_jax = Jax
        kept = jnp.ones(1 << 20)
        with capture.watch(sys.argv[1], every=0.05, at=0.8) as watched:
            watched.step(12)
            time.sleep(100)
    """
    with job(tmp_path, code):
        wait_for(lambda: bool(list(tmp_path.rglob("*.prof"))))
    found = listing_of_path(str(tmp_path)).recordings
    [profile] = [recording for recording in found if recording.kind is RecordingKind.DEVICE_PROFILE]
    assert profile.capture_info is not None
    assert (profile.capture_info.reason, profile.capture_info.step) == ("80 % of capacity", 12)
    [curve] = curves(tmp_path)
    assert (curve.capacity, curve.reported_peak) == (1 << 30, 970 << 20)
    assert (curve.run, curve.memory) == (profile.run, profile.memory)
