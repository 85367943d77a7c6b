"""What a command's words mean: which recording, and which moment of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ns": 1}  # micro sign, or mu
MOMENT = re.compile(rf"([0-9]{{1,18}}(?:\.[0-9]{{1,18}})?)\s*({'|'.join(NANOSECONDS)})")
IDS_LISTED = 5


def choose(recordings: Sequence[Recording], wanted: str | None, path: str) -> Recording:
    """The one with the largest peak, or the one that `wanted` is the id or a part of the id of. InputError else."""
    if not recordings:
        raise InputError("No program with buffers and no allocator events", path, "profile the work on the device")
    if wanted is None:
        # Of the errors in one text, the one that says most; its peak need not be the largest.
        first = (recording for recording in recordings if recording.refusal is None or not recording.refusal.rank)
        return next(first, recordings[0])
    found = [recording for recording in recordings if wanted == recording.id]
    found = found or [recording for recording in recordings if wanted in recording.id]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(recording.id for recording in (found or recordings)[:IDS_LISTED])
    what = f"{len(found)} recordings are named so" if found else "No such recording"
    raise InputError(what, wanted, f"--recording takes an id, or a part that only one has: {ids}")


def position_of(recording: Recording, text: str) -> int:
    """The position that `1.5s`, `300ms` or `#120` means; -1 is before the first event. InputError otherwise."""
    if numbered := re.fullmatch("#([0-9]{1,18})", text):
        if (position := int(numbered[1])) < recording.length:
            return position
        raise InputError("There is no such position", text, f"give one from #0 to #{recording.length - 1}")
    clock = recording.clock
    if clock is None or not len(clock):
        raise InputError("This recording has no clock", text, f"give a position, #0 to #{recording.length - 1}")
    last = f"{clock[-1] / 1e9:.6g}s"
    timed = MOMENT.fullmatch(text)
    if not timed:
        remedy = f"give a time of the profile up to {last}, such as 1.5s or 300ms, or an event, such as #120"
        raise InputError("Not a moment", text, remedy)
    # Whole nanoseconds, for what was rounded when it was printed.
    time = round(float(timed[1]) * NANOSECONDS[timed[2]])
    if time > clock[-1] and not np.isclose(time, clock[-1], rtol=1e-5, atol=0):
        raise InputError("After the last event", text, f"give a time up to {last}")
    return int(np.searchsorted(clock, time, side="right")) - 1
