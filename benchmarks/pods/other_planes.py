"""The planes without allocator events: timelines of devices, compiled programs, and the time of the profile."""

from __future__ import annotations

import numpy as np

from benchmarks import generate
from benchmarks.pods.tasks import FIRST_STEP, STEP, STEPS, step_start
from benchmarks.pods.wire import LINES, PLANES, Bytes, head, message, varints
from benchmarks.writer import MODULE, PROGRAM_ID
from tb_memplugin.protos.xplane_pb2 import XPlane

CHIP = b"TPU v6 Lite"
STATS = (b"device_type_string", b"device_offset_ps", b"device_duration_ps")
TYPE, OFFSET, DURATION = range(1, len(STATS) + 1)
MODULES, OPS = 2, 3  # ids of lines
PROGRAM, FIRST_OP, OP_NAMES = 1, 128, 512  # ids of events; those of operations take two bytes
OP_BYTES = 39  # an operation's event
MIN_PS, MAX_PS = 1 << 21, 1 << 28  # of an operation; such durations are varints of four bytes
SECOND_NS = 10**9


def program(buffers: int) -> tuple[bytes, int]:
    """Return the plane with a compiled program, and the bytes of the program's temporaries."""
    proto, expected = generate.generate(buffers)
    plane = generate.profile(proto).planes[0]
    return plane.SerializeToString(deterministic=True), expected.reserved_bytes - expected.persistent_bytes


def timeline(size: int, seed: int) -> list[bytes]:
    """Return the contents of a device's plane in pieces of about `size` bytes together, without its name and number."""
    plane = XPlane()
    plane.stats.add(metadata_id=TYPE, str_value=CHIP)
    for number, name in enumerate(STATS, 1):
        plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, name
    names = {PROGRAM: f"{MODULE}({PROGRAM_ID})"} | {FIRST_OP + n: f"%fusion.{n}" for n in range(OP_NAMES)}
    for key, text in names.items():
        plane.event_metadata[key].id, plane.event_metadata[key].name = key, text.encode()
    modules = plane.lines.add(id=MODULES, name=b"XLA Modules")
    for step in range(STEPS):
        modules.events.add(metadata_id=PROGRAM, offset_ps=step_start(step) + STEP * 3 // 10, duration_ps=STEP * 3 // 5)
    first = XPlane(lines=[modules]).SerializeToString(deterministic=True)
    plane.ClearField("lines")
    names_and_stats = plane.SerializeToString(deterministic=True)
    line = XPlane()
    line.lines.add(id=OPS, name=b"XLA Ops")
    (ops,) = line.lines
    events = _operations(max((size - len(first) - len(names_and_stats)) // OP_BYTES, 1), seed).tobytes()
    # In the order of their numbers, as profilers write fields.
    return [first, *message(LINES, [ops.SerializeToString(), events]), names_and_stats]


def _operations(count: int, seed: int) -> Bytes:
    """Return the events of operations that follow each other, with the stats of a TPU's events."""
    rng = np.random.default_rng(seed)
    start = np.linspace(FIRST_STEP, FIRST_STEP + STEPS * STEP, count, endpoint=False).astype(np.int64)
    longest = min(max(STEPS * STEP // count, MIN_PS + 1), MAX_PS)
    offset = varints(start, 7)
    duration = varints(rng.integers(MIN_PS, longest, count), 4)
    name = varints(rng.integers(FIRST_OP, FIRST_OP + OP_NAMES, count), 2)

    def constant(*values: int) -> Bytes:
        return np.broadcast_to(np.array(values, np.uint8), (count, len(values)))

    return np.hstack(
        [
            constant(0x22, OP_BYTES - 2, 0x08), name, constant(0x10), offset, constant(0x18), duration,
            constant(0x22, 10, 0x08, OFFSET, 0x18), offset, constant(0x22, 7, 0x08, DURATION, 0x18), duration,
        ]
    )  # fmt: skip


def device_plane(device: int, contents: list[bytes]) -> list[bytes]:
    """Return a device's plane as a field of an XSpace, in pieces."""
    named = XPlane(id=device + 1, name=b"/device:TPU:%d" % device).SerializeToString()
    return message(PLANES, [named, *contents])


def task_environment(start: int) -> bytes:
    """Return the plane that tells the time of the profile, in seconds since 1970, as a field of an XSpace."""
    plane = XPlane(name=b"Task Environment")
    for number, (name, seconds) in enumerate(((b"profile_start_time", 0), (b"profile_stop_time", 9)), 1):
        plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, name
        plane.stats.add(metadata_id=number, uint64_value=(start + seconds) * SECOND_NS)
    content = plane.SerializeToString(deterministic=True)
    return head(PLANES, len(content)) + content
