"""Sessions of one capture: folders whose names differ by seconds, as each host names its folder by its own clock.

Sessions of one TensorBoard run are joined if each begins within the tolerance after the one before. Where a host would
then be in a capture twice, the sessions are split at their longest pause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from tb_memplugin.errors import InputError
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.fleet import Session
from tb_memplugin.model.kinds import PAUSE_SECONDS
from tb_memplugin.numbered_names import counted_host
from tb_memplugin.sizes import counted

# As JAX, XProf and TensorFlow name sessions: 2024_07_12_01_26_45
DATE = re.compile(r"(\d{4})[_-](\d\d)[_-](\d\d)[_T-](\d\d)[_:-](\d\d)[_:-](\d\d)(\D.*)?", re.ASCII)
# Where capture.snapshot writes a folder for each process: <date>[_process_3]_<host>_<pid>
PROCESSES = "device_profiles"


@dataclass(frozen=True, slots=True)
class Capture:
    """Sessions that are read as one, in order of their beginning."""

    name: str  # of the first session, and the number of others
    runs: tuple[Run, ...]
    sessions: tuple[Session, ...]

    @property
    def files(self) -> list[tuple[HostFile, str]]:
        """Return the files with their runs. Stages of an XLA dump that have no memory are left out."""
        return [(file, run.name) for run in self.runs for file in run.files if file.stages is None]

    @property
    def began(self) -> float:
        """Return the time at which it began, in seconds since 1970, from its name, else from the times of its files."""
        known = [session.began for session in self.sessions if session.began is not None]
        return min(known) if known else max(run.modified_ns for run in self.runs) / 1e9


def captures(runs: Iterable[Run], tolerance: float = PAUSE_SECONDS) -> list[Capture]:
    """Return the captures of runs, newest first. A session whose name is no date is a capture of its own.

    A folder that is listed several times, as a part of several logdirs, counts once.
    """
    dated: dict[str, list[tuple[float, Run]]] = {}
    found = []
    for run in {run.folder: run for run in runs}.values():
        parent, _, session = run.name.rpartition("/")
        if (began := began_at(session)) is None:
            found.append(alone(run))
        else:
            dated.setdefault(parent, []).append((began, run))
    for of_parent in dated.values():
        found += map(_capture, _joined(sorted(of_parent, key=lambda each: (each[0], each[1].name)), tolerance))
    return sorted(found, key=lambda capture: (capture.began, capture.name), reverse=True)


SMALL_SHARE = 0.5  # of the hosts of the capture before it: one host that was profiled again is not the newest capture


def chosen_capture(found: Sequence[Capture], named: str | None) -> tuple[Sequence[Capture], list[str]]:
    """Return the newest capture, or that with a session of a name; and a text for each that is too small to be newest.

    The newest one is not clearly smaller than the one before it, of dated ones of one run. `found`: newest first.
    InputError where no session has the name.
    """
    if named is not None:
        of_name = [capture for capture in found if any(named in session.name for session in capture.sessions)]
        if not of_name:
            some = ", ".join(capture.name for capture in found[:5])
            raise InputError("No such capture", named, f"the newest are {some}")
        return of_name[:1], []
    texts, sizes = list[str](), [sum(session.hosts for session in capture.sessions) for capture in found]
    dated = [capture.sessions[0].began is not None for capture in found]
    runs = [capture.runs[0].name.rpartition("/")[0] if dated[i] else str(i) for i, capture in enumerate(found)]
    at = 0
    while at + 1 < len(found) and runs[at] == runs[at + 1] and sizes[at] <= SMALL_SHARE * sizes[at + 1]:
        hosts = f"{counted(sizes[at], 'host')} of {sizes[at + 1]:,}"
        texts.append(f"{found[at].name} has {hosts} and is not taken as the newest capture")
        at += 1
    return found[at : at + 1], texts


def rule_text(tolerance: float = PAUSE_SECONDS) -> str:
    """Return the rule in a sentence."""
    return f"sessions that begin within {tolerance:g} s of the one before are one capture, each host once"


def began_at(session: str) -> float | None:
    """Return the time that a session's name states, in seconds since 1970; None if it states none."""
    if not (found := DATE.fullmatch(session)):
        return None
    try:
        return datetime(*map(int, found.groups()[:6]), tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
    except ValueError:
        return None


def process_of(run: Run) -> str:
    """Return the process that wrote a folder of device profiles, as in `process_3_node7_4711`; empty for others."""
    parent, _, folder = run.folder.replace("\\", "/").rstrip("/").rpartition("/")
    found = DATE.fullmatch(folder) if parent.rpartition("/")[2] == PROCESSES else None
    return (found[7] or "").strip("_") if found else ""


def hosts_of(run: Run) -> list[str]:
    """Return the names of the hosts of a run's files, each once."""
    process = process_of(run)
    return list(dict.fromkeys(process or file.host for file in run.files))


def host_count(run: Run) -> int:
    """Return the number of hosts, by names. Snapshots whose names differ in numbers that are no rank count once.

    Only their contents show whether these are of one process (fleet/series.py), so a list of runs claims no more.
    Files outside any host, such as a text, count as none.
    """
    if process_of(run):
        return 1
    kinds = ((file.host, file.format.kind if file.format is not None else None) for file in run.files if file.host)
    return len({counted_host(host, kind is not None and kind.is_snapshot) for host, kind in kinds})


def _joined(sessions: Sequence[tuple[float, Run]], tolerance: float) -> Iterable[Sequence[tuple[float, Run]]]:
    """Split sessions, in order of time, at pauses longer than the tolerance, and at others while a host repeats."""
    waiting = [sessions]
    while waiting:
        part = waiting.pop()
        pauses = [after[0] - before[0] for before, after in pairwise(part)]
        longest = max(pauses, default=0.0)
        if len(part) < 2 or (longest <= tolerance and not _repeats_a_host(part)):
            yield part
            continue
        # Splitting at the middle one of equal pauses avoids quadratic time for thousands of sessions.
        equal = [index for index, pause in enumerate(pauses, 1) if pause == longest]
        at = equal[len(equal) // 2]
        waiting += [part[at:], part[:at]]


def _repeats_a_host(sessions: Sequence[tuple[float, Run]]) -> bool:
    hosts = [host for _, run in sessions for host in hosts_of(run)]
    return len(set(hosts)) < len(hosts)


def alone(run: Run) -> Capture:
    """Return a run as a capture of its own."""
    return _capture([(None, run)])


def _capture(sessions: Sequence[tuple[float | None, Run]]) -> Capture:
    runs = tuple(run for _, run in sessions)
    described = tuple(Session(run.name, began, len(hosts_of(run))) for began, run in sessions)
    return Capture(runs[0].name, runs, described)
