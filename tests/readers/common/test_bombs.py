"""Small files that stand for as much as possible: each is read within the memory and the time that it may take."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.bombs import Bomb, bombs, compressed

from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.protos.pprof_pb2 import Profile

SMALL, EMPTY = 30_000, 20_000_000
ADDRESS_BYTES = 3 << 30
PROCESSOR_SECONDS = 20  # of one file on a slow machine; nearly all take less than 1

# Reads each file, with what is read on access, and prints the growth of the process in bytes and the seconds it took.
READ = f"""
import logging, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, ({ADDRESS_BYTES}, {ADDRESS_BYTES}))
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.readers import hlo, pprof, torch_snapshot, xplane

def resident(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

for path in sys.stdin.read().splitlines():
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before, begin = resident("VmRSS"), time.process_time()
    recordings = listing_of_path(path).recordings
    try:
        for recording in recordings:
            len(recording.allocations)
            if recording.program is not None and recording.program.values is not None:
                recording.program.values()
    except InputError:
        pass
    del recordings
    print(path, resident("VmHWM") - before, time.process_time() - begin, sep="\\t", flush=True)
"""


def read(found: Iterable[Bomb], folder: Path) -> None:
    """Read the files in a process, and check what each of them took."""
    by_path = {}
    for number, bomb in enumerate(found):
        path = folder / bomb.name.replace("a.", f"a{number}.", 1)
        path.write_bytes(bomb.data)
        by_path[str(path)] = bomb
    done = subprocess.run(
        [sys.executable, "-c", READ], input="\n".join(by_path), capture_output=True, text=True, timeout=900, check=False
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    last = by_path[lines[-1][0]].what if lines else "nothing"
    assert done.returncode == 0, f"ended after {last}: {done.stderr[-2000:]}"
    assert "Traceback" not in done.stderr, done.stderr[:3000]
    assert len(lines) == len(by_path)
    for name, growth, seconds in lines:
        what, size = by_path[name].what, len(by_path[name].data)
        assert int(growth) <= (450 << 20) + 256 * size, f"{what}: {int(growth):,} bytes"
        assert float(seconds) <= PROCESSOR_SECONDS, f"{what}: {seconds} s"


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="measures memory as Linux does")


@needs_proc
@pytest.mark.parametrize("kind", ["program", "profile", "xplane"])
def test_a_few_bytes_that_refer_to_much(kind: str, tmp_path: Path) -> None:
    read((bomb for bomb in bombs(SMALL) if bomb.what.startswith(kind)), tmp_path)


@needs_proc
@pytest.mark.parametrize("kind", [Profile, HloProto])
def test_empty_messages_of_which_a_thousand_take_a_byte(kind: type[Profile | HloProto], tmp_path: Path) -> None:
    name = "a.prof" if kind is Profile else "a.hlo.pb.gz"
    base = Profile(string_table=[b"", b"space", b"bytes"])
    base.sample_type.add(type=1, unit=2)
    prefix = base.SerializeToString() if kind is Profile else b""
    repeated = [field for field in kind.DESCRIPTOR.fields if field.is_repeated]
    nested = [b"\x0a", b"\x1a"] if kind is HloProto else []  # hlo_module, buffer_assignment
    contents = [prefix + bytes([field.number << 3 | 2, 0]) * (EMPTY // 2) for field in repeated]
    for outer in nested:
        for number in range(1, 16):
            inside = bytes([number << 3 | 2, 0]) * (EMPTY // 2)
            contents.append(outer + _length(len(inside)) + inside)
    read((Bomb(f"{kind.__name__} {n}", name, gzip.compress(content)) for n, content in enumerate(contents)), tmp_path)


def _length(size: int) -> bytes:
    found = bytearray()
    while size > 0x7F:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*found, size])


@needs_proc
def test_content_a_thousand_times_as_large_as_its_file(tmp_path: Path) -> None:
    read(compressed(65_000), tmp_path)
