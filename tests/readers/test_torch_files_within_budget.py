"""Small files of PyTorch's formats that expand a thousandfold: read within the budget of memory, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[1]
LIMIT = 6 << 30  # of the address space, which libraries reserve
SECONDS = 300  # for all; each takes at most 2 s

CODE = """
import resource, sys
from pathlib import Path
from support.hostile_torch_files import files
from tb_memplugin.errors import InputError
from tb_memplugin.readers import open_file
from tb_memplugin.readers.common.budget import ReadBudget

def memory(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) << 10

resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
open_file(b"{}", "x.pickle")
open_file(b"{}", "x.pt.trace.json")
for name, data in files():
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        before = memory("VmRSS")
    except OSError:
        before = None
    try:
        answer = [recording for part in open_file(data, name) for recording in part.read()]
    except InputError as error:
        answer = str(error)
        assert name in answer
    if before is not None:
        grown, limit = memory("VmHWM") - before, ReadBudget(data, name).limit
        assert grown <= limit, (name, len(data), grown, limit)
    del answer
"""


def test_memory_is_a_multiple_of_the_size_at_most() -> None:
    subprocess.run(
        [sys.executable, "-c", CODE, str(LIMIT)], cwd=SUPPORT, timeout=SECONDS, check=True, env=_environment()
    )


def _environment() -> dict[str, str]:
    paths = [str(SUPPORT), str(SUPPORT.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OPENBLAS_NUM_THREADS": "1"}
