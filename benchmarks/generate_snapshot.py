"""A generated PyTorch memory snapshot of a training loop, with a given number of events.

A step allocates its tensors forward and frees them backward. Every event has a stack of 40 frames, a separate list of
shared frames as torch.cuda.memory._dump_snapshot writes it: about 300 bytes per event in the file. Generating takes
about a kilobyte of memory per event.
"""

import pickle
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

TENSORS = 500  # of a step, each in a separate segment
PARAMETERS = 100  # the first of them: live from the first step to the end
DEPTH, SITES, FRAMES = 40, 300, 2000
MIB = 1 << 20
BASE = 0x7F0000000000
FREES = ("free_requested", "free_completed")


def actions() -> Iterator[tuple[str, int]]:
    """Yield (action, tensor) of an endless training loop."""
    yield from (("alloc", tensor) for tensor in range(PARAMETERS))
    while True:
        yield from (("alloc", tensor) for tensor in range(PARAMETERS, TENSORS))
        yield from ((free, tensor) for tensor in reversed(range(PARAMETERS, TENSORS)) for free in FREES)


def address_of(tensor: int) -> int:
    return BASE + tensor * 64 * MIB


def size_of(tensor: int) -> int:
    return (2 + tensor % 40) * MIB


def trace(count: int) -> list[dict[str, Any]]:
    frames = [{"name": f"function_{i}", "filename": f"/train/model_{i % 20}.py", "line": i + 1} for i in range(FRAMES)]
    stacks = [[frames[site * (depth + 1) % FRAMES] for depth in range(DEPTH)] for site in range(SITES)]
    return [
        {
            "action": action,
            "addr": address_of(tensor),
            "size": size_of(tensor),
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + 3 * event,
            "compile_context": "N/A",
            "user_metadata": "",
            "frames": list(stacks[tensor % SITES]),
        }
        for event, (action, tensor) in enumerate(islice(actions(), count))
    ]


def segment(address: int, size: int, state: str) -> dict[str, Any]:
    """Return a segment with one block in a state: `active_allocated`, `active_pending_free` or `inactive`."""
    block = {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "allocated_size": size if state == "active_allocated" else 0,
        "active_size": 0 if state == "inactive" else size,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }


def generate(file: Path, count: int) -> Path:
    """Write a snapshot with a number of events."""
    events = trace(count)
    state = dict.fromkeys(range(TENSORS), "inactive")
    after = {"alloc": "active_allocated", "free_requested": "active_pending_free", "free_completed": "inactive"}
    for event in events:
        state[(event["addr"] - BASE) // (64 * MIB)] = after[event["action"]]
    segments = [segment(address_of(tensor), size_of(tensor), state[tensor]) for tensor in range(TENSORS)]
    with file.open("wb") as stream:
        pickle.dump({"segments": segments, "device_traces": [events], "external_annotations": []}, stream, protocol=4)
    return file
