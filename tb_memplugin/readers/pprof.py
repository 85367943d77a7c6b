"""Profiles in pprof's format, from jax.profiler.save_device_memory_profile, or any other with a value in bytes.

One recording per device, all with one tree of frames. tb_memplugin.capture.snapshot adds notes to a device profile, as
comments of the format.
"""

import json
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import NOTES_PREFIX, Axis, RecordingKind, Role
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.model.tables import Allocations, DeviceProfileCounts, ReportedMemory
from tb_memplugin.numbered_names import natural_key
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.limits import HAS, IS, MAX_BYTES, counted_caveat
from tb_memplugin.readers.common.part import FilePart, Origin
from tb_memplugin.readers.pprof_profile import Profile, read_profile
from tb_memplugin.sizes import counted

MAX_REASON = 100  # characters


@dataclass(frozen=True)
class Notes:
    """The training step, and per device its allocator's figures in bytes."""

    step: int | None = None
    # device.memory_stats() by the device's label in the profile
    devices: dict[str, dict[str, int]] = field(default_factory=dict)
    reason: str = ""  # why the snapshot was saved


def read_notes(comments: tuple[str, ...]) -> Notes:
    """Parse the first comment with notes; return empty notes where there is none or it is damaged."""
    for comment in comments:
        if comment.startswith(NOTES_PREFIX):
            try:
                note = json.loads(comment.removeprefix(NOTES_PREFIX))
            except (ValueError, RecursionError):
                continue
            if isinstance(note, dict):
                step, devices, reason = map(note.get, ("step", "devices", "reason"))
                text = reason[:MAX_REASON] if isinstance(reason, str) else ""
                return Notes(_byte_count(step), _note_devices(devices), text)
    return Notes()


def reported_memory(device: dict[str, int]) -> ReportedMemory | None:
    """Return the figures of the device's allocator; None where the notes lack them."""
    if "bytes_in_use" not in device:
        return None
    in_use, limit = device["bytes_in_use"], device.get("bytes_limit")
    reserved = device.get("bytes_reserved", 0)
    free = max(0, (limit or 0) - in_use - reserved)
    largest = device.get("largest_free_block_bytes")  # always 0 on GPUs
    fragmentation = 1 - min(1.0, largest / free) if largest and free else np.nan
    peak = device.get("peak_bytes_in_use", in_use)
    figures = np.array([in_use, reserved, free, peak], dtype=np.int64).reshape(4, 1)
    return ReportedMemory(figures[0], figures[1], figures[2], figures[3], np.array([fragmentation]))


def _note_devices(stats_by_device: object) -> dict[str, dict[str, int]]:
    if not isinstance(stats_by_device, dict):
        return {}
    return {
        str(name): {str(key): number for key, value in stats.items() if (number := _byte_count(value)) is not None}
        for name, stats in stats_by_device.items()
        if isinstance(stats, dict)
    }


def _byte_count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_BYTES else None


EXECUTABLE = "executable"
EXECUTABLES = "executables"  # the memory of executables without a device, where there are several devices
MAX_DEVICES = 1000
UNKNOWN_DEVICE = "unknown device"


def open_pprof(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a profile; reading it raises InputError where it is none."""
    title = path.replace("\\", "/").rpartition("/")[2]
    read = partial(_read, data, title, Origin(run, host, path))
    return [FilePart(title, RecordingKind.DEVICE_PROFILE, path, len(data), read)]


def _read(data: bytes | memoryview, title: str, origin: Origin) -> list[Recording]:
    profile = read_profile(data, origin.source)
    note = read_notes(profile.comments)
    caveats, unknown = _caveats(profile), _beyond(profile.bytes)
    known_bytes = np.where(unknown, 0, profile.bytes) if unknown.any() else profile.bytes
    found = []
    for memory, rows in _memories(profile, origin.source).items():
        device = note.devices.get(memory, {})
        size = known_bytes[rows]
        found.append(
            Recording(
                **origin._asdict(),
                kind=RecordingKind.DEVICE_PROFILE,
                title=title,
                memory=memory,
                axis=Axis.INSTANT,
                length=1,
                allocations=_allocations(profile, rows, size),
                regions=table_builder.segments(np.zeros(1, np.int64), np.array([size.sum()])),
                stacks=profile.stacks,
                reported=reported_memory(device),
                device_profile=DeviceProfileCounts(np.clip(profile.count[rows], 0, MAX_BYTES)),
                capture_info=CaptureInfo(profile.time_ns, note.step, note.reason),
                reported_peak=device.get("peak_bytes_in_use"),
                capacity=device.get("bytes_limit"),
                caveats=(*caveats, *_unknown_sizes(profile, rows)),
            )
        )
    return found


def _memories(profile: Profile, path: str) -> dict[str, I64]:
    """Group rows by device, in natural order.

    JAX labels buffers with their device but not executables. With one device, executables are grouped with its buffers;
    with several, they are a memory of their own.
    """
    device, kind = profile.device, profile.kind
    device_codes = [i for i in np.unique(device.codes).tolist() if i >= 0]
    if len(device_codes) > MAX_DEVICES:  # each is a recording
        raise InputError(f"{len(device_codes):,} devices in one profile", path, "the file is damaged: copy it again")
    labels = {device.strings[code]: np.flatnonzero(device.codes == code) for code in device_codes}
    found = {name: labels[name] for name in sorted(labels, key=natural_key)}
    unlabeled = np.flatnonzero(device.codes < 0)
    executable = kind.isin({EXECUTABLE})[unlabeled]
    for name, rows in ((EXECUTABLES, unlabeled[executable]), (UNKNOWN_DEVICE, unlabeled[~executable])):
        if len(rows):
            single_device = name == EXECUTABLES and len(labels) == 1
            name = next(iter(labels)) if single_device else name
            found[name] = np.sort(np.r_[found.get(name, rows[:0]), rows])
    return found or {UNKNOWN_DEVICE: unlabeled}


def _beyond(numbers: I64) -> npt.NDArray[np.bool_]:
    """Mark the numbers below 0 or above MAX_BYTES."""
    beyond: npt.NDArray[np.bool_] = numbers.view(np.uint64) > MAX_BYTES
    return beyond


def _allocations(profile: Profile, rows: I64, size: I64) -> Allocations:
    kind = profile.kind.take(rows)
    return table_builder.allocations(
        size,
        id=rows,
        region=np.zeros(len(rows), np.int32),
        role=np.where(kind.isin({EXECUTABLE}), Role.EXECUTABLE, Role.UNKNOWN).astype(np.uint8),
        stack=profile.leaf[rows],
        name=kind,
    )


def _unknown_sizes(profile: Profile, rows: I64) -> list[Caveat]:
    size, count = profile.bytes[rows], profile.count[rows]
    if not (_beyond(size) | _beyond(count)).any():
        return []
    unknown = int(np.clip(count, 0, MAX_BYTES)[size < 0].sum())
    text = (
        f"The size of {counted(unknown, 'allocation')} is unknown to the runtime (executables on TPU) and counted as 0."
    )
    found = [Caveat(CaveatCode.SIZE_UNKNOWN, text)] if unknown else []
    damaged = int(((size > MAX_BYTES) | _beyond(count)).sum())
    rest = "impossible counts or sizes, which are ignored"
    return found + counted_caveat(CaveatCode.IMPOSSIBLE_BYTES, damaged, "sample", HAS, rest)


def _caveats(profile: Profile) -> list[Caveat]:
    without = "without a value for some of the profile's types"
    verbs = (f"{without} is", f"{without} are")
    rest = "missing in the file and shown as unnamed"
    return [
        *counted_caveat(CaveatCode.BROKEN_SAMPLES, profile.broken, "sample", verbs, "ignored"),
        *counted_caveat(CaveatCode.UNKNOWN_FRAMES, profile.unknown_frames, "stack frame", IS, rest),
    ]
