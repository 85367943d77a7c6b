"""Selection of a recording, and of a moment in it, from the arguments of a command."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import HOST_MEMORY
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import AboutFile
from tb_memplugin.sizes import counted

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ns": 1}  # micro sign, or mu
TIME = re.compile(rf"([0-9]{{1,18}}(?:\.[0-9]{{1,18}})?)\s*({'|'.join(NANOSECONDS)})")
MAX_IDS_LISTED = 5

# One of the functions below: recordings, the id that is asked for, the path, and problems of its files.
Chooser = Callable[[Sequence[Recording], str | None, str, Iterable[AboutFile]], Recording]


def choose(
    recordings: Sequence[Recording],
    wanted: str | None,
    path: str,
    problems: Iterable[AboutFile] = (),
    preferred: Callable[[Recording], bool] = lambda recording: True,
) -> Recording:
    """Return the recording whose id is or contains `wanted`, by default the largest. InputError if none or several.

    `problems` are those of the path's files; they may be the reason for having no recordings.
    `preferred`: the default is the largest of these recordings, where there are any.
    """
    if not recordings:
        raise no_recordings(path, problems)
    if wanted is None:
        recordings = list(filter(preferred, recordings)) or recordings
        # A text may contain several errors: choose the most informative one, whose peak need not be the largest.
        ranked = [one for one in recordings if one.out_of_memory is None or not one.out_of_memory.rank]
        # The host of a watched job uses more bytes than a device, and is seldom the question.
        largest = next((one for one in ranked if one.memory != HOST_MEMORY), ranked[0] if ranked else recordings[0])
        return _program_of_peak(largest, ranked)
    matches = [recording for recording in recordings if wanted == recording.id]
    matches = matches or [recording for recording in recordings if is_wanted(recording.id, wanted)]
    if len(matches) == 1:
        return matches[0]
    ids = ", ".join(recording.id for recording in (matches or recordings)[:MAX_IDS_LISTED])
    what = f"{len(matches):,} recordings match" if matches else "No such recording"
    raise InputError(what, wanted, f"give an id or a unique part of one: {ids}")


# By default the largest recording of a device's main memory, or of a program's.
choose_main_memory = partial(choose, preferred=lambda recording: recording.is_main_memory)
choose_main_program = partial(choose, preferred=lambda one: one.program is not None and one.is_main_memory)


def choose_with_allocations(
    recordings: Sequence[Recording], wanted: str | None, path: str, problems: Iterable[AboutFile]
) -> Recording:
    """Return a recording as `choose` does, by default the largest one with allocations. InputError for a curve."""
    found = choose(recordings, wanted, path, problems, lambda one: not one.kind.is_sampled and len(one.allocations) > 0)
    if found.kind.is_sampled:
        remedy = "give a snapshot of its run; `kill -USR1 <process id>` makes a running job save one"
        raise InputError("A curve has no allocations", found.id, remedy)
    return found


# An allocator's peak is that of a program with at least this share of it: the rest is what lives beside the program.
MOST = 0.9


def _program_of_peak(allocator: Recording, recordings: Sequence[Recording]) -> Recording:
    """Return the largest program of an allocator's run if it has most of the peak, as it knows more of its buffers."""
    if not allocator.kind.runs_programs or allocator.kind.is_sampled:
        return allocator
    where = allocator.run, allocator.host
    programs = (one for one in recordings if one.program is not None and one.is_main_memory)
    largest = next((one for one in programs if (one.run, one.host) == where), allocator)
    return largest if peak(largest).bytes >= MOST * peak(allocator).bytes else allocator


def is_wanted(recording_id: str, wanted: str) -> bool:
    """Return whether a text selects an id: it is a part of the id, or the recording's id in a folder above."""
    return wanted in recording_id or wanted.endswith(f"/{recording_id}")


def no_recordings(path: str, problems: Iterable[AboutFile]) -> InputError:
    """Return the error of a path without recordings: the first problem of its files, if they have any."""
    found = [*problems]
    if not found:
        return InputError("No recordings found", path, "profile a step that runs on the device")
    more = f" ({counted(len(found) - 1, 'more problem')})" if len(found) > 1 else ""
    return InputError("No recordings found", found[0].file, f"{found[0].text}{more}")


def position_of(recording: Recording, text: str) -> int:
    """Return the position of `1.5s`, `300ms` or `#120`; -1 is before the first event. InputError for other texts."""
    if numbered := re.fullmatch("#([0-9]{1,18})", text):
        if (position := int(numbered[1])) < recording.length:
            return position
        raise InputError("No such position", text, f"give one from #0 to #{recording.length - 1}")
    clock = recording.clock
    if clock is None or not len(clock):
        raise InputError("This recording has no clock", text, f"give a position, #0 to #{recording.length - 1}")
    last = f"{clock[-1] / 1e9:.6g}s"
    timed = TIME.fullmatch(text)
    if not timed:
        remedy = f"give a time in the profile up to {last}, such as 1.5s or 300ms, or an event, such as #120"
        raise InputError("Not a time or an event", text, remedy)
    # Rounded to whole nanoseconds, as printed times are.
    time = round(float(timed[1]) * NANOSECONDS[timed[2]])
    if time > clock[-1] and not np.isclose(time, clock[-1], rtol=1e-5, atol=0):
        raise InputError("After the last event", text, f"give a time up to {last}")
    return int(np.searchsorted(clock, time, side="right")) - 1


def time_at(recording: Recording, position: int) -> int | None:
    """Return the time of a position in nanoseconds since the recording began; None where it is not known."""
    clock = recording.clock
    return int(clock[position]) if clock is not None and 0 <= position < len(clock) else None
