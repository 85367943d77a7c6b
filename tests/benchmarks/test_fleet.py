"""The benchmark of `fleet`: its sums over processes, and the pods that it measures."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.fleet import FEW, Watch, tree, truth_of, write_pod
from benchmarks.timing import python

CHILD = "kept = b'x' * 60_000_000; print(flush=True); import time; time.sleep(60)"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}])
content = open(sys.argv[1], "rb").read()
print("ready", flush=True)
child.wait()
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's figures of processes")
def test_a_watch_adds_up_a_process_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(7_000_000))
    with subprocess.Popen(python("-c", PARENT, str(file)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = {process.stdout.readline() for _ in range(2)}
        assert lines == {b"\n", b"ready\n"}
        with Watch(process.pid) as watch:
            time.sleep(0.5)
        _, child = tree(process.pid)
        subprocess.run(["kill", str(child)], check=True)
    assert 67_000_000 < watch.memory < 150_000_000
    assert 7_000_000 < watch.read < 60_000_000


def test_a_pod_with_hosts_enough_has_faults_and_a_small_one_is_healthy(tmp_path: Path) -> None:
    for hosts, faults in ((FEW, 0), (16, 10)):
        logdir = tmp_path / f"pod-{hosts}.unfinished"
        write_pod(hosts, 0, logdir)
        truth = json.loads(truth_of(logdir).read_text())
        assert len(truth["names"]) == faults
        assert len(list(logdir.rglob("*.xplane.pb"))) == truth["hosts"]
        assert truth_of(logdir).name == f"pod-{hosts}.truth.json"
