"""The same job with one small file for each rank: a device memory profile, or a PyTorch memory snapshot."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from benchmarks.generate_snapshot import segment
from benchmarks.pods.allocator import Event, Loop, run
from benchmarks.pods.pod import Drawn, Pod, damaged
from benchmarks.pods.tasks import MIB, STEPS, Call, step_start
from benchmarks.pods.truth import Capture, Device
from tb_memplugin.protos.pprof_pb2 import Profile

FOLDER = "/job/"  # of the source files
START_US = 1_795_000_000_000_000
MEMORY = "cuda:0"  # of every rank, as each process sees one GPU
SCRIPT = Call("train.py", 112, "main")


def write_ranks(pod: Pod, logdir: Path, suffix: str, run_name: str = "ranks") -> Capture:
    """Write `<logdir>/<run>/memory_rank<n><suffix>` for each host of the pod, with one device, and return the truth.

    `suffix`: `.prof` or `.pickle`. Raises ValueError for faults that such files cannot have: they have no programs, and
    a device memory profile has one moment, so no growth.
    """
    if pod.faults.other_programs or (pod.faults.leaks and suffix == ".prof"):
        raise ValueError(f"ranks with {suffix} files cannot have other programs, and only snapshots have leaks")
    pod = replace(pod, devices=1, name="memory_rank{}")
    drawn, found = Drawn(pod, [MEMORY]), list[Device]()
    folder = logdir / run_name
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(pod.hosts):
        if rank in drawn.missing:
            continue
        (extras,) = drawn.extras(rank)
        loop = run(Random(f"{pod.seed} {rank}"), 0, (*pod.extras, *extras), ragged=False)
        events = [event for event in loop.events if event.size >= MIB]  # small blocks would need a pool of their own
        name, damage = pod.name.format(rank), drawn.damaged.get(rank, "")
        (folder / f"{name}{suffix}").write_bytes(b"".join(damaged([FORMATS[suffix](loop, events)], damage)))
        if not damage:
            peak = sum(event.size for event in live_at_peak(events))
            found.append(Device(name, MEMORY, peak, 0))
    return drawn.capture(run_name, {}, found)


def live_at_peak(events: list[Event]) -> list[Event]:
    """Return the allocations that are live when they are the most bytes."""
    live: dict[int, Event] = {}
    size, most, found = 0, 0, list[Event]()
    for event in events:
        if event.frees:
            del live[event.address]
        else:
            live[event.address] = event
        size += -event.size if event.frees else event.size
        if size > most:
            most, found = size, list(live.values())
    return found


def device_profile(loop: Loop, events: list[Event]) -> bytes:
    """Return the arrays that are live at the peak, as jax.profiler.save_device_memory_profile saves them."""
    profile = Profile(string_table=[b""])
    texts = {"": 0}

    def text(value: str) -> int:
        if value not in texts:
            texts[value] = len(texts)
            profile.string_table.append(value.encode())
        return texts[value]

    for kind, unit in (("allocations", "count"), ("space", "bytes")):
        profile.sample_type.add(type=text(kind), unit=text(unit))
    numbers: dict[Call, int] = {}
    for event in live_at_peak(events):
        stack = [loop.tasks[event.task].call, SCRIPT]
        for call in stack:
            if call not in numbers:
                number = numbers[call] = len(numbers) + 1
                profile.function.add(id=number, name=text(call.function), filename=text(FOLDER + call.file))
                profile.location.add(id=number).line.add(function_id=number, line=call.line)
        sample = profile.sample.add(location_id=[numbers[call] for call in stack], value=[1, event.size])
        sample.label.add(key=text("kind"), str=text("buffer"))
        sample.label.add(key=text("device"), str=text(MEMORY))
    return gzip.compress(profile.SerializeToString(deterministic=True), mtime=0)


def snapshot(loop: Loop, events: list[Event]) -> bytes:
    """Return the events as torch.cuda.memory._dump_snapshot saves them, each block in a segment of its own."""
    frames = {
        task.call: [{"name": c.function, "filename": FOLDER + c.file, "line": c.line} for c in (task.call, SCRIPT)]
        for task in loop.tasks
    }
    trace = [
        {
            "action": action,
            "addr": event.address,
            "size": event.size,
            "stream": 0,
            "time_us": _microseconds(event.time),
            "frames": frames[loop.tasks[event.task].call],
        }
        for event in events
        for action in (("free_requested", "free_completed") if event.frees else ("alloc",))
    ]
    last = {event.address: event for event in events}
    segments = [
        segment(event.address, event.size, "inactive" if event.frees else "active_allocated") for event in last.values()
    ]
    steps = [
        {"stage": stage, "name": f"step {step}", "device": 0, "time_us": _microseconds(step_start(step + late) - late)}
        for step in range(STEPS)
        for late, stage in enumerate(("START", "END"))
    ]
    content = {"segments": segments, "device_traces": [trace], "external_annotations": steps}
    return pickle.dumps(content, protocol=4)


def _microseconds(time: int) -> int:
    return START_US + time // 10**6


FORMATS: dict[str, Callable[[Loop, list[Event]], bytes]] = {".prof": device_profile, ".pickle": snapshot}
