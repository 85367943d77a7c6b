"""Seeds: small valid inputs of each format, of files in the repository or built here."""

from __future__ import annotations

import gzip
import json
import pickle
import sqlite3
from base64 import b64decode
from contextlib import closing
from pathlib import Path
from typing import Any

from fuzz.attempts.folders import pack
from fuzz.attempts.kept import KEY, empty_folder, programs
from fuzz.attempts.requests import server
from support.allocator_planes import Log
from support.caching_allocator import MIB, CachingAllocator
from support.fits import candidate, record_text
from support.fleets import GIB, fleet_of_peaks
from support.hand_built import ALLOC, FREE, two_halves
from support.host_threads import Host
from support.pprof_files import Frame, Sample, Writer
from support.servers import DEMO, TESTS
from support.torch_training import Training
from support.watch_files import saw_tooth, watch_bytes

from tb_memplugin.fit.cache import Cache
from tb_memplugin.fit.compile_task import Compiled
from tb_memplugin.fleet.cache import FILE, SummaryCache
from tb_memplugin.hosts.mcp.tools import BY_NAME
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace
from tb_memplugin.questions.asking.endpoint import endpoints
from tb_memplugin.questions.compare.baseline import baseline_facts
from tb_memplugin.questions.compare.baseline_file import text_of
from tb_memplugin.readers.hlo.kernels.windows import BODY
from tb_memplugin.readers.watch_layout import CounterSource

DATA = TESTS / "data"
SMALL = 24 << 10  # bytes: larger programs are tried less than a hundred times a second


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def hlo() -> list[bytes]:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    made.trace((ALLOC, first.id), (ALLOC, second.id), (FREE, first.id))
    files = [*DATA.glob("xla_dumps/*/*after_optimizations.hlo.pb*"), *DATA.glob("programs/*.hlo.pb.gz")]
    programs = sorted((unpacked(path) for path in sorted(files) if path.stat().st_size < SMALL), key=len)
    return [made.data, *(data for data in programs if len(data) < SMALL)]


def compressed_hlo() -> list[bytes]:
    return [gzip.compress(data, 6, mtime=0) for data in hlo()]


def xplane() -> list[bytes]:
    log = Log()
    for number in range(6):
        stats = {
            "allocator_name": "@GPU_0_bfc",
            "addr": 64 + number % 3,
            "allocation_bytes": 512,
            "bytes_allocated": 512 * (number % 3),
        }
        log.add(
            number % 2 == 1, 1000 * number, **stats, tf_op="@jit(step)/dot", peak_bytes_in_use=4096, region_type="temp"
        )
    host = (
        Host()
        .add("$train.py:30 step", 0, 90)
        .add("PjitFunction(step)", 5, 50, run_id=3)
        .thread()
        .add("step", 0, 9, step_num=1)
    )
    metadata = XPlane(name=b"/host:metadata")
    metadata.stat_metadata[1].name = b"Hlo Proto"
    for number, program in enumerate(hlo()[:2]):
        event = metadata.event_metadata[number]
        event.name = b"jit_step(%d)" % number
        event.stats.add(metadata_id=1, bytes_value=program)
    device = XPlane(name=b"/device:TPU:0")
    device.stat_metadata[1].name = b"memory_size"
    device.stats.add(metadata_id=1, uint64_value=16 << 30)
    files = [
        XSpace(planes=planes).SerializeToString()
        for planes in ([log.plane], [host.plane], [metadata, device], [log.plane, metadata, host.plane, device])
    ]
    return [*files, (DEMO / "oom/plugins/profile/cpu/localhost.xplane.pb").read_bytes()]


def pprof() -> list[bytes]:
    writer = Writer()
    for number in range(8):
        stack = [
            Frame(f"layer{number % 3}", "model.py", number),
            Frame("train", "train.py", 7),
            Frame("<module>", "train.py", 90),
        ]
        writer.add(
            Sample(
                stack, 1 << number + 9, number, "buffer" if number % 2 else "executable", f"TPU_{number % 2}(process=0)"
            )
        )
    built = writer.profile.SerializeToString()
    return [built, unpacked(DEMO / "device_profile/memory.prof"), unpacked(DEMO / "device_profile_leak/memory9.prof")]


def compressed_pprof() -> list[bytes]:
    return [gzip.compress(data, 6, mtime=0) for data in pprof()]


def oom_texts() -> list[bytes]:
    return [path.read_bytes() for path in sorted((DATA / "oom_texts").glob("*.txt"))]


def hlo_texts() -> list[bytes]:
    """Return the texts of small programs, each as one content."""
    stems = [path.name.removesuffix("-buffer-assignment.txt") for path in DATA.glob("xla_dumps/*/*-assignment.txt")]
    ends = ("-buffer-assignment.txt", "-live-range.txt", ".txt")
    files = {path.name: path for path in DATA.glob("xla_dumps/*/*.txt")}
    return [b"\n".join(files[stem + end].read_bytes() for end in ends) for stem in sorted(stems)]


def snapshots() -> list[dict[str, Any]]:
    """Return a snapshot with everything that the format allows, one of a training loop, and one of an empty device."""
    allocator = CachingAllocator(limit=60 * MIB, expandable=True)
    stack = [{"name": "f", "filename": "a.py", "line": 1}, {"name": "main", "filename": "train.py", "line": 2}]
    first = allocator.alloc(3 * MIB, stack, 3, (0, 2), user_metadata="kv")
    assert first is not None
    allocator.annotate(first, "weights")
    allocator.alloc(90 * MIB)
    allocator.free(first)
    allocator.take()
    marks = [{"device": 0, "time_us": allocator.clock - 9, "name": "step 1", "stage": "START"}]
    host = [{"address": 1 << 30, "size": MIB, "allocated": True, "active": True, "frames": []}]
    full = allocator.snapshot(
        external_annotations=marks,
        host_segments=host,
        host_traces=[],
        allocator_settings={"roundup_power2_divisions": {"1": 4}, "max_split_size": -1},
    )
    training = Training(2, clears=True, layers=1, steps=True).snapshot()
    return [full, training, CachingAllocator().snapshot(external_annotations=[])]


def torch_pickles() -> list[bytes]:
    return [pickle.dumps(snapshot, protocol) for snapshot in snapshots() for protocol in (2, 4)]


def torch_json() -> list[bytes]:
    return [json.dumps(snapshot).encode() for snapshot in snapshots()]


def torch_traces() -> list[bytes]:
    def head(category: str, name: str, thread: int, start: float, length: float) -> dict[str, Any]:
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 7,
            "tid": thread,
            "ts": start,
            "dur": length,
            "args": {},
        }

    def memory(thread: int, time: float, address: int, size: int, **more: int) -> dict[str, Any]:
        args = {"Addr": address, "Bytes": size, "Device Id": 0, "Device Type": 1, **more}
        return {"ph": "i", "name": "[memory]", "pid": 7, "tid": thread, "ts": time, "args": args}

    events = [
        head("user_annotation", "ProfilerStep#4", 1, 10, 50),
        head("cpu_op", "aten::linear", 1, 20, 10),
        head("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 21, 20),
        memory(1, 24.5, 100, 512, **{"Total Allocated": 512, "Total Reserved": 4096}),
        memory(2, 25, 200, 512, **{"Total Allocated": 1024, "Total Reserved": 4096}),
        memory(1, 36, 100, -512, **{"Total Allocated": 512, "Total Reserved": 4096}),
    ]
    plain = {"traceEvents": [memory(1, 3, 1, 8), memory(1, 4, 1, -8)], "schemaVersion": 1}
    return [json.dumps({"traceEvents": events}).encode(), json.dumps(plain, indent=2).encode()]


def torch_timelines() -> list[bytes]:
    rows = [
        [-1, 1, 37888, 7],
        [-1, 1, 512, 7],
        [10, 0, 512, 1],
        [20, 0, 1024, 2],
        [30, 2, -512, 1],
        [40, 3, -37888, 7],
        [50, 2, -1024, 2],
    ]
    sums = [[1, 2, 3], [[0] * 8, [512] * 8, [1 << 30] * 8]]
    return [json.dumps(content).encode() for content in (rows, sums)]


def compressed_timelines() -> list[bytes]:
    return [gzip.compress(data, 6, mtime=0) for data in torch_timelines()]


def watches() -> list[bytes]:
    one = watch_bytes({"cuda:0": saw_tooth(60)}, steps={at: at // 4 for at in range(0, 60, 4)}, out_of_memory=True)
    several = {f"cuda:{number}": saw_tooth(20, growth=MIB) for number in range(3)}
    arrays = watch_bytes({"cpu:0": saw_tooth(3)}, source=CounterSource.LIVE_ARRAYS, finished=True)
    parts = [("host", part) for part in ("private", "children", "shm", "shared", "used")]
    named = {key: [1 << 30] * 9 for key in [*parts, ("cuda:0", "pool"), ("cuda:0", "phase train")]}
    machine = watch_bytes({"cuda:0": saw_tooth(9), "host": saw_tooth(9)}, named=named)
    return [one, watch_bytes(several, source=CounterSource.TORCH), arrays, machine]


def fit_records() -> list[bytes]:
    return [record_text().encode(), record_text(error="ValueError: x", traceback="x", peak_bytes=None).encode()]


def folders() -> list[bytes]:
    """Return XLA dumps with their smallest program, and a folder of other small files."""
    found = []
    for folder in sorted((DATA / "xla_dumps").iterdir()):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size < SMALL]
        beside = (
            {path.relative_to(folder).as_posix().encode(): path.read_bytes() for path in files[:10]} if files else {}
        )
        if beside:
            found.append(pack(beside))
    mixed = {
        b"run/memory.prof": compressed_pprof()[1],
        b"run/x.oom.txt": oom_texts()[0],
        b"fit/fit.json": fit_records()[0],
        b"s.pickle": torch_pickles()[0],
    }
    return [*found, pack(mixed)]


def requests() -> list[bytes]:
    """Return a valid request for each endpoint, and some others."""
    here = server()
    found = [b"GET /", b"GET /index.html", b"HEAD /index.js\nAccept-Encoding: gzip"]
    valid = {
        "run": here.runs[0],
        "by": "source",
        "row": "0",
        "at": "0",
        "from": "0",
        "to": "1",
        "buckets": "50",
        "most": "20",
    }
    for recording_id in here.ids[:4]:
        for route, endpoint in endpoints().items():
            names = [parameter.name for parameter in endpoint.parameters]
            query = "&".join(
                f"{name}={valid.get(name, recording_id if name in ('id', 'a', 'b') else '')}" for name in names
            )
            if endpoint.post:
                text = oom_texts()[0]
                found.append(b"POST /api/%b\nContent-Length: %d\n\n%b" % (route.encode(), len(text), text))
            else:
                found.append(f"GET /api/{route}?{query.replace(' ', '%20').replace('|', '%7C')}".encode())
    return found


def expressions() -> list[bytes]:
    return [b"main", b"^jit_.*step$", b"(a|b)+", b"[a-z_]+\\.py:\\d+", b"(?i)layer\\w{2,4}"]


def kernels() -> list[bytes]:
    """Return the bytecode of Pallas kernels."""
    stored = json.loads((DATA / "kernel_windows.json").read_text())
    bodies = (BODY.search(kernel["config"].encode()) for kernel in stored)
    return [b64decode(body[1]) for body in bodies if body is not None]


def baselines() -> list[bytes]:
    found, _ = baseline_facts(programs())
    return [text_of([one.facts for one in found]).encode()]


def fit_caches() -> list[bytes]:
    """Return stored programs of `fit`."""
    compiled = Compiled(candidate(), {"a.hlo.pb": b"program", "a/topology.pb": b"topology"})
    with empty_folder() as below:
        stored = Cache(below)
        stored.put(KEY, compiled)
        return [path.read_bytes() for path in below.rglob("*.program")]


def fleet_caches() -> list[bytes]:
    """Return databases with summaries of files."""
    with empty_folder() as below:
        stored = SummaryCache(below)
        stored.put([*fleet_of_peaks([GIB, 2 * GIB], growth=["a.py:1 f", ""]).files], [])
        with closing(sqlite3.connect(below / FILE)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return [(below / FILE).read_bytes()]


def uploads() -> list[bytes]:
    """Return sequences of pieces: of a whole file, of two files in turns, and of one that is never complete."""
    text = oom_texts()[0].decode(errors="replace")[:3000]
    size, half = len(text.encode()), len(text) // 2
    whole = [["k", "a.oom.txt", size, 0, text]]
    first, second = text[:half], text[half:]
    turns = [
        ["k", "a.oom.txt", size, 0, first],
        ["l", "b.oom.txt", size, 0, first],
        ["k", "a.oom.txt", size, len(first.encode()), second],
        ["l", "b.oom.txt", size, len(first.encode()), second],
    ]
    return [json.dumps(steps).encode() for steps in (whole, turns, turns[:3])]


def messages() -> list[bytes]:
    """Return calls of every tool of MCP, with its arguments."""
    values = {"path": "", "a": "", "b": "", "max_peak": "1GiB", "top": 3, "at": "#0"}
    found = [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]
    for name, tool in BY_NAME.items():
        known = tool.input_schema["properties"]
        arguments = {key: value for key, value in values.items() if key in known}
        call = {"name": name, "arguments": arguments}
        found.append({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    return [json.dumps(message).encode() for message in found]


def names() -> list[bytes]:
    return [
        b"run\0memory.prof",
        b"a/plugins/profile/s\0host.xplane.pb",
        b"d\0module_0001.jit_f.sm_9.0_gpu_after_optimizations.hlo.pb",
        b"r\0x.oom.txt",
    ]
