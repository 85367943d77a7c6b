"""Compiled loops without memory: an error, and no wrong answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNION = """
import resource, sys
import numpy as np
from tb_memplugin.native.hlo.shared_bytes import union_over_time
n = 2_000_000
numbers = np.arange(n)
columns = np.zeros(n, np.int64), numbers * 2, np.ones(n, np.int64), numbers, np.ones(n, np.int8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
try:
    print("answered", union_over_time(*columns).sum())
except MemoryError:
    print("refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_a_loop_that_runs_out_of_memory_raises_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", UNION], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr
    assert "ignored" not in done.stderr
