"""Recordings of a pprof profile: one per device, all with one tree of frames."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.capture_info import CaptureInfo
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import DeviceProfileCounts
from tb_memplugin.model.tables import Allocations, Regions
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.pprof import notes
from tb_memplugin.readers.pprof.profile import Profile, read_profile
from tb_memplugin.sizes import agree, counted

EXECUTABLE = "executable"
EXECUTABLES = "executables"  # the memory of executables without a device, where there are several devices
MAX_DEVICES = 1000
UNKNOWN_DEVICE = "unknown device"


def open_pprof(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a profile; reading it raises InputError where it is none."""
    title = path.replace("\\", "/").rpartition("/")[2]
    read = partial(_read, data, path, title, run, host)
    return [FilePart(title, RecordingKind.DEVICE_PROFILE, path, len(data), read)]


def _read(data: bytes | memoryview, path: str, title: str, run: str, host: str) -> list[Recording]:
    profile = read_profile(data, path)
    note = notes.read(profile.comments)
    caveats, known_bytes = _caveats(profile), _known_bytes(profile)
    found = []
    for memory, rows in _memories(profile, path).items():
        device = note.devices.get(memory, {})
        size = known_bytes[rows]
        found.append(
            Recording(
                kind=RecordingKind.DEVICE_PROFILE,
                title=title,
                run=run,
                host=host,
                source=path,
                memory=memory,
                axis=Axis.INSTANT,
                length=1,
                allocations=_allocations(profile, rows, size),
                regions=Regions(
                    np.zeros(1, np.int64), np.array([size.sum()]), np.array([int(RegionKind.TEMPORARY)], np.uint8)
                ),
                stacks=profile.stacks,
                reported=notes.reported(device),
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
    found = {name: labels[name] for name in sorted(labels, key=_natural_sort_key)}
    unlabeled = np.flatnonzero(device.codes < 0)
    executable = _executable(kind)[unlabeled]
    for name, rows in ((EXECUTABLES, unlabeled[executable]), (UNKNOWN_DEVICE, unlabeled[~executable])):
        if len(rows):
            single_device = name == EXECUTABLES and len(labels) == 1
            name = next(iter(labels)) if single_device else name
            found[name] = np.sort(np.r_[found.get(name, rows[:0]), rows])
    return found or {UNKNOWN_DEVICE: unlabeled}


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key under which cuda:2 precedes cuda:10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,18})", name)]


def _executable(kind: Text) -> npt.NDArray[np.bool_]:
    return kind.isin({EXECUTABLE})


def _known_bytes(profile: Profile) -> I64:
    """Return bytes per sample, 0 where they are unknown."""
    beyond = _beyond(profile.bytes)
    return np.where(beyond, 0, profile.bytes) if beyond.any() else profile.bytes


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
        role=np.where(_executable(kind), Role.EXECUTABLE, Role.UNKNOWN).astype(np.uint8),
        stack=profile.leaf[rows],
        name=kind,
    )


def _unknown_sizes(profile: Profile, rows: I64) -> list[Caveat]:
    size, count = profile.bytes[rows], profile.count[rows]
    if not (_beyond(size) | _beyond(count)).any():
        return []
    unknown = int(np.clip(count, 0, MAX_BYTES)[size < 0].sum())
    damaged = int(((size > MAX_BYTES) | _beyond(count)).sum())
    found = []
    if unknown:
        text = (
            f"The size of {counted(unknown, 'allocation')} is unknown to the runtime (executables on TPU) and counted "
            "as 0."
        )
        found.append(Caveat(CaveatCode.SIZE_UNKNOWN, text))
    if damaged:
        have = agree(damaged, "has", "have")
        text = f"{counted(damaged, 'sample')} {have} impossible counts or sizes, which are ignored."
        found.append(Caveat(CaveatCode.IMPOSSIBLE_BYTES, text))
    return found


def _caveats(profile: Profile) -> list[Caveat]:
    found = []
    if profile.broken:
        text = (
            f"{counted(profile.broken, 'sample')} without a value for some of the profile's types "
            f"{agree(profile.broken, 'is', 'are')} ignored."
        )
        found.append(Caveat(CaveatCode.BROKEN_SAMPLES, text))
    if profile.unknown_frames:
        text = (
            f"{counted(profile.unknown_frames, 'stack frame')} {agree(profile.unknown_frames, 'is', 'are')} missing in "
            "the file and shown as unnamed."
        )
        found.append(Caveat(CaveatCode.UNKNOWN_FRAMES, text))
    return found
