"""A device profile as Recordings: one for each device that it names, all of them over one tree of frames."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.capture_info import CaptureInfo
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations, Regions
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.pprof import notes
from tb_memplugin.readers.pprof.profile import Profile, read_profile

EXECUTABLE = "executable"
EXECUTABLES = "executables"  # the memory of those that no device is told of, where there are several
UNTOLD = "unknown device"


def open_pprof(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """The one part of a profile. InputError when it is read and is none."""
    title = path.replace("\\", "/").rpartition("/")[2]
    read = partial(_read, data, path, title, run, host)
    return [FilePart(title, RecordingKind.DEVICE_PROFILE, path, len(data), read)]


def _read(data: bytes | memoryview, path: str, title: str, run: str, host: str) -> list[Recording]:
    profile = read_profile(data, path)
    note = notes.read(profile.comments)
    caveats = _caveats(profile)
    found = []
    for memory, rows in _memories(profile).items():
        device = note.devices.get(memory, {})
        size = _known(profile)[rows]
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
                counts=np.clip(profile.count[rows], 0, MAX_BYTES),
                capture_info=CaptureInfo(profile.time_ns, note.step),
                reported_peak=device.get("peak_bytes_in_use"),
                capacity=device.get("bytes_limit"),
                caveats=(*caveats, *_unknown_sizes(profile, rows)),
            )
        )
    return found


def _memories(profile: Profile) -> dict[str, I64]:
    """Rows by device, in the order in which people count. JAX labels buffers with theirs, and executables with none.

    Executables go with the buffers where there is one device only, and are a memory of their own where there are more.
    """
    device, kind = profile.device, profile.kind
    named = [i for i in np.unique(device.codes).tolist() if i >= 0]
    labels = {device.strings[code]: np.flatnonzero(device.codes == code) for code in named}
    found = {name: labels[name] for name in sorted(labels, key=_counted)}
    bare = np.flatnonzero(device.codes < 0)
    executable = _executable(kind)[bare]
    for name, rows in ((EXECUTABLES, bare[executable]), (UNTOLD, bare[~executable])):
        if len(rows):
            only = name == EXECUTABLES and len(labels) == 1
            name = next(iter(labels)) if only else name
            found[name] = np.sort(np.r_[found.get(name, rows[:0]), rows])
    return found or {UNTOLD: bare}


def _counted(name: str) -> list[tuple[int, str]]:
    """cuda:2 before cuda:10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,18})", name)]


def _executable(kind: Text) -> npt.NDArray[np.bool_]:
    of_text = np.array([kind.strings[i] == EXECUTABLE for i in range(len(kind.strings))] + [False], dtype=bool)
    return of_text[kind.codes]


def _known(profile: Profile) -> I64:
    """Bytes, 0 where the file does not know them."""
    return np.where((profile.bytes >= 0) & (profile.bytes <= MAX_BYTES), profile.bytes, 0)


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
    size, count = profile.bytes[rows], np.clip(profile.count[rows], 0, MAX_BYTES)
    unknown = int(count[size < 0].sum())
    damaged = int(((size > MAX_BYTES) | (profile.count[rows] > MAX_BYTES) | (profile.count[rows] < 0)).sum())
    found = []
    if unknown:
        text = f"The runtime does not know the size of {unknown:,} of these, as of executables on TPU; they count as 0."
        found.append(Caveat("size_unknown", text))
    if damaged:
        text = f"{damaged:,} samples give counts or bytes that cannot be; those figures are left out."
        found.append(Caveat("impossible_bytes", text))
    return found


def _caveats(profile: Profile) -> list[Caveat]:
    found = []
    if profile.broken:
        text = f"{profile.broken:,} samples do not have one value for each of the profile's types; they are left out."
        found.append(Caveat("broken_samples", text))
    if profile.unknown_frames:
        text = f"{profile.unknown_frames:,} places in stacks are not in the file; they show as unnamed."
        found.append(Caveat("unknown_frames", text))
    return found
