"""Small files of PyTorch's formats that expand to many rows, long texts, deep trees or much content."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from typing import Any

# Opcodes of pickles.
PROTO, STOP, MEMOIZE, MARK = b"\x80\x04", b".", b"\x94", b"("


def files(scale: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents. `scale` multiplies how much the files expand to, by more than their size."""
    yield from ((f"{name}.pickle", data) for name, data in _pickles(5000 * scale))
    yield from ((f"{name}.snapshot.json", data) for name, data in _json(300_000 * scale))
    yield from _profiles(1_000_000 * scale)


def _event(**values: Any) -> dict[str, Any]:
    return {"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 5, **values}


def _segment(blocks: list[Any], **values: Any) -> dict[str, Any]:
    return {"address": 0, "total_size": 1 << 30, "segment_type": "large", "device": 0, "blocks": blocks, **values}


def _pickles(n: int) -> Iterator[tuple[str, bytes]]:
    def snapshot(segments: list[Any], traces: list[Any], **values: Any) -> bytes:
        return pickle.dumps({"segments": segments, "device_traces": traces, **values}, protocol=4)

    blocks = [{"size": 512, "state": "active_allocated", "address": 1}] * n
    yield "shared_block", snapshot([_segment(blocks)] * n, [])
    events = [_event()] * (n * 10)
    yield "shared_event", snapshot([], [events * 10])
    yield "shared_events", snapshot([], [events] * 100)
    yield "shared_host_events", snapshot([], [], host_traces=[events] * n, host_segments=[])
    frames = [{"name": f"f{i}", "filename": "a.py", "line": i} for i in range(n)]
    stacks = [frames[k:] for k in range(0, n, 50)]
    yield "shared_stacks", snapshot([], [[_event(frames=stack) for stack in stacks] for _ in range(100)])
    yield "many_devices", snapshot([_segment(blocks[:1], device=k) for k in range(n * 4)], [[_event()]])
    yield "many_traces", snapshot([], [[_event()]] * (n * 10))
    long = "x" * (1 << 20)
    yield "long_text", snapshot([], [[_event(user_metadata=long, compile_context=long + "y")]] * 100)
    of_contexts = [_event(user_metadata=long, compile_context=str(k)) for k in range(n)]
    yield "long_labels", snapshot([], [of_contexts])
    marks = [{"device": 0, "time_us": k, "name": long, "stage": "START"} for k in range(n)]
    yield "long_annotations", snapshot([], [[_event()]], external_annotations=marks)
    functions = [{"name": f"at::_ops::{long}{k}::", "filename": "", "line": 1} for k in range(4)]
    backward = [{"name": f"F{k}Backward0", "filename": "", "line": 1} for k in range(n)]
    crossed = [_event(frames=[functions[k % 4], backward[k]], addr=k) for k in range(n)]
    yield "long_operators", snapshot([], [crossed])
    yield "varied_dicts", snapshot([], [[{f"key {k}": k} for k in range(n * 10)]])
    yield "varied_events", snapshot([], [[_event(**{f"key {k % 4000}": k}) for k in range(n)]])
    address = [_event(action="segment_free", addr=512, size=512 * (k % 2)) for k in range(n * 4)]
    yield "one_address", snapshot([], [address + [_event(addr=600, size=8) for _ in range(n * 4)]])
    for size in (1 << 62, -(1 << 62), 1 << 49, (1 << 64) - 1, 1 << 600):
        odd = [_event(size=size, addr=addr, action=action) for addr in (0, (1 << 64) - 512, size)
               for action in ("segment_alloc", "alloc", "free_completed", "segment_map", "segment_unmap")]  # fmt: skip
        yield f"size_{size.bit_length()}", snapshot([_segment([], total_size=size, is_expandable=True)], [odd * 10])
    yield "long_integer", PROTO + b"\x8b" + (n * 100).to_bytes(4, "little") + b"\xff" * (n * 100) + STOP
    yield "deep_lists", PROTO + b"]" * (n * 100) + b"a" * (n * 100 - 1) + STOP
    yield "deep_tuples", PROTO + b")" + b"\x85" * (n * 100) + STOP
    yield "marks", PROTO + MARK * (n * 100) + STOP
    yield "memo", PROTO + b"N" + MEMOIZE * (n * 100) + STOP
    doubled: list[Any] = [_event()]
    for _ in range(300):
        doubled = [doubled, doubled]
    yield "doubled_lists", snapshot([], [doubled])
    item_by_item = b"}" + b"h\x00Ns" * 250
    yield "items_one_by_one", PROTO + b"N\x94" + b"0" + (item_by_item + b"0") * (n // 10) + b"N" + STOP
    pair = b"}\x94}\x940" + b"0h\x01h\x00Ns0h\x02h\x00Ns" * 60
    yield "items_in_turn", PROTO + b"N\x94" + (pair + b"0") * (n // 20) + b"N" + STOP


def _json(n: int) -> Iterator[tuple[str, bytes]]:
    for name, item in (("dicts", b"{}"), ("pairs", b'{"":0}'), ("lists", b"[]"), ("numbers", b"0"), ("texts", b'""'),
                       ("nested", b'{"":[{"":[{}]}]}')):  # fmt: skip
        yield name, b'{"segments":[' + b",".join([item] * n) + b"]}"
    yield "deep", b"[" * n
    yield "deep_dicts", b'{"":' * n


def _profiles(n: int) -> Iterator[tuple[str, bytes]]:
    def packed(name: str, *parts: bytes) -> tuple[str, bytes]:
        return f"{name}.gz", gzip.compress(b"".join(parts), 6, mtime=0)

    memory, operator = b'{"name":"[memory]","ts":1,"args":{}},', b'{"cat":"cpu_op","name":"","ts":1,"dur":1,"tid":1},'
    yield packed("events.pt.trace.json", b'{"traceEvents":[', memory * n)
    yield packed("operators.pt.trace.json", b'{"traceEvents":[', memory, operator * n)
    yield packed("zeros.pt.trace.json", bytes(n * 100))
    yield packed("marker.pt.trace.json", b"{", b'"[memory]"' * n)
    yield packed("open.pt.trace.json", memory, b"{" * (n * 10))
    yield packed("rows.raw.json", b"[", b"[1,2,1,1]," * n, b"[1,2,1,1]]")
    yield packed("zeros.raw.json", b"[[", b"0," * (n * 10), b"0]]")
    yield packed("lists.raw.json", b"[", b"[]," * (n * 3), b"[]]")
    columns = ",".join(map(str, range(9)))
    times = n // 4
    sums = [f"[{columns}]".encode(), b"[0,0,0,0,0,0,0,0,0]"] * (times // 2)
    yield packed("sums.memory.json", b"[[", b",".join([b"1"] * times), b"],[", b",".join(sums), b"]]")
    threads = b",".join(
        json.dumps({"cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "tid": k}).encode()
        + json.dumps({"name": "[memory]", "ts": 1, "tid": k, "args": {"Addr": k, "Bytes": 1}}).encode()
        for k in range(n // 10)
    )
    yield "threads.pt.trace.json", b'{"traceEvents":[' + threads + b"]}"
    devices = b",".join(
        b'{"name":"[memory]","ts":1,"args":{"Bytes":1,"Device Id":%d}}' % device for device in range(n // 50)
    )
    yield "devices.pt.trace.json", b'{"traceEvents":[' + devices + b"]}"
