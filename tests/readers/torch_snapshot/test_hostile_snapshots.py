"""Damaged or malicious snapshots and timelines: an InputError, or the readable part."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.caching_allocator import MIB, CachingAllocator

from tb_memplugin.errors import InputError
from tb_memplugin.questions.kinds.first_view import first_view
from tb_memplugin.questions.recording import tables
from tb_memplugin.readers import open_file

ODD: list[Any] = [
    None, True, -1, 1 << 62, -(1 << 63), 1 << 64, 1 << 80, 1e300, "", "oom", b"q", [], {}, (1, 2), [[]], {"a": [1]},
]  # fmt: skip


def whole() -> dict[str, Any]:
    """Return a snapshot with everything that the format allows."""
    allocator = CachingAllocator(limit=60 * MIB, expandable=True)
    first = allocator.alloc(3 * MIB, [{"name": "f", "filename": "a.py", "line": 1}], 3, (0, 2), user_metadata="kv")
    assert first is not None
    allocator.annotate(first, "weights")
    allocator.alloc(90 * MIB)
    allocator.free(first)
    allocator.take()
    marks = [{"device": 0, "time_us": allocator.clock - 9, "name": "step 1", "stage": "START"}]
    host = [{"address": 1 << 30, "size": MIB, "allocated": True, "active": True, "frames": []}]
    divisions = {"roundup_power2_divisions": {"1": 4}, "max_split_size": -1}
    return allocator.snapshot(
        external_annotations=marks, host_segments=host, host_traces=[], allocator_settings=divisions
    )


def places(value: Any) -> list[tuple[Any, Any]]:
    """Yield every (list or dict, key) in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]


def shown(data: bytes, name: str) -> None:
    try:
        for part in open_file(data, f"/logs/{name}", host="x"):
            for recording in part.read():
                first_view(recording)
                tables.rows(recording)
    except InputError as error:
        assert "/logs/" in str(error)


@settings(max_examples=300)
@given(changes=st.lists(st.tuples(st.integers(0), st.sampled_from(ODD)), min_size=1, max_size=5), as_json=st.booleans())
def test_any_value_may_be_any_other(changes: list[tuple[int, Any]], as_json: bool) -> None:
    snapshot = pickle.loads(pickle.dumps(whole()))
    for where, odd in changes:
        found = places(snapshot)
        if not found:
            break
        container, key = found[where % len(found)]
        container[key] = deepcopy(odd)
    if as_json:
        shown(json.dumps(snapshot, default=str).encode(), "x.snapshot.json")
    else:
        shown(pickle.dumps(snapshot), "x.pickle")


@settings(max_examples=300)
@given(at=st.integers(0), byte=st.integers(0, 255), end=st.integers(1), protocol=st.integers(2, 5))
def test_any_byte_may_be_any_other(at: int, byte: int, end: int, protocol: int) -> None:
    data = bytearray(pickle.dumps(whole(), protocol))
    data[at % len(data)] = byte
    shown(bytes(data), "x.pickle")
    shown(bytes(data[: end % len(data) + 1]), "x.pickle")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        # Lengths of missing content: of text, of bytes, of a long integer, of a frame.
        ("x.pickle", b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f"),
        ("x.pickle", b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f"),
        ("x.pickle", b"\x80\x04\x8b\xff\xff\xff\x7f"),
        ("x.pickle", b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f"),
        ("x.raw.json.gz", gzip.compress(b"[[1, 2, 3, 4]]", mtime=0)),
    ],
    ids=["text", "bytes", "integer", "frame", "packed"],
)
def test_no_memory_is_taken_for_what_is_not_there(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    bound = 3 << 30  # most of the address space, which libraries reserve
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({bound}, {bound}))\n"
        "from tb_memplugin.errors import InputError\n"
        "from tb_memplugin.readers import open_file\n"
        "try:\n    [part.read() for part in open_file(open(sys.argv[1], 'rb').read(), sys.argv[1])]\n"
        "except InputError:\n    pass\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_sizes_that_cannot_be_are_left_out_of_the_sums() -> None:
    snapshot = whole()
    events = snapshot["device_traces"][0]
    sizes = [event["size"] for event in events if event["action"] == "alloc"]
    assert sizes
    events += [{"action": action, "addr": 9, "size": 1 << 62, "time_us": 1} for action in ("alloc", "segment_alloc")]
    events[1]["time_us"] = (1 << 63) - 1
    snapshot["segments"][0]["total_size"] = 1 << 61
    [part] = open_file(pickle.dumps(snapshot), "/logs/x.pickle", host="x")
    recording = part.read()[0]
    assert "impossible_bytes" in {caveat.code for caveat in recording.caveats}
    assert recording.allocations.size.max() < 1 << 30
    assert recording.reserved is not None and np.abs(recording.reserved).max() < 1 << 30
