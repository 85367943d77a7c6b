"""The benchmark of remote logdirs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.servers import DEMO


def test_requests_and_bytes_of_a_logdir_in_a_store_are_counted() -> None:
    pytest.importorskip("s3fs", minversion="2024")
    pytest.importorskip("moto.server")
    command = [sys.executable, "-m", "benchmarks.remote", str(DEMO / "oom"), "--milliseconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    size = (DEMO / "oom/plugins/profile/cpu/localhost.xplane.pb").stat().st_size
    rows = [line.split() for line in done.stdout.splitlines()]
    found = {" ".join(row[: row.index("requests") - 1]): row[row.index("requests") - 1 :] for row in rows[1:]}
    assert done.stdout.startswith(f"1 runs, 1 files, {size / 1e6:.1f} MB")
    assert found["one listing"][0] == "1"
    assert found["needed parts, 1 at once"][:3] == ["1", "requests", f"{size / 1e6:.2f}"]
