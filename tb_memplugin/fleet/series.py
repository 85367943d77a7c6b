"""Series: files that one process saved one after another, and that count as one host.

Files whose names differ in numbers only come from one process, or each from a rank of its own. They are a series if
they have the same devices, and if their steps, times or bytes rise with the numbers. In doubt, each file counts as a
host, and the answer says so: if ranks were read as a series, the largest one would hide the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from tb_memplugin.fleet.sessions import process_of
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.fleet import FileSummary
from tb_memplugin.model.kinds import NumberedFiles, RecordingKind
from tb_memplugin.numbered_names import NUMBER, split_name

OOM = ".oom"  # ends the name of the file that capture.torch_memory saves beside that of a process
# Ranks save at the same moment, and small files are copied within milliseconds, so pauses of a second show one process.
# By chance, three files are in order once in 6 times; files without such pauses need five, which are once in 120 times.
PAUSE_NS, MIN_PAUSED, MIN_RISING = 10**9, 3, 5

RULE = (
    "files whose names differ in numbers only, with the same devices, are one process where their steps, their times "
    "(by a second or more) or their bytes rise with the numbers"
)


class Member(NamedTuple):
    """A file of a series, and the numbers in its name, except the number of a rank."""

    numbers: tuple[int, ...]
    file: HostFile
    summary: FileSummary

    @property
    def devices(self) -> frozenset[str]:
        return frozenset(device.device for device in self.summary.devices)

    @property
    def bytes(self) -> int:
        return sum(device.peak_bytes for device in self.summary.devices)


class Series(NamedTuple):
    """Files of a run whose names differ in numbers only, in order of these numbers."""

    name: str  # of its host, such as `memory*`
    members: Sequence[Member]
    evidence: str  # why they are one process, in words; empty: nothing shows it

    @property
    def kind(self) -> str:
        return self.members[0].summary.kind

    @property
    def fingerprint(self) -> str:
        """Return a hash of the versions of its files."""
        text = "\n".join(f"{file.path} {file.size} {file.stamp}" for _, file, _ in self.members)
        return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def find_series(
    runs: Iterable[Run], summaries: Mapping[str, FileSummary], numbered: NumberedFiles = NumberedFiles.AUTO
) -> list[Series]:
    """Return the series of runs, and groups of files with the same devices that may be series, with the evidence."""
    if numbered is NumberedFiles.HOSTS:
        return []
    found = []
    for run in runs:
        process = process_of(run)
        groups: dict[tuple[str, ...], list[Member]] = {}
        for file in run.files:
            summary = summaries.get(file.path)
            if summary is not None and summary.kind in (RecordingKind.DEVICE_PROFILE, RecordingKind.TORCH_SNAPSHOT):
                texts, numbers = split_name(file.host.removesuffix(OOM))
                groups.setdefault((summary.kind, process) if process else (summary.kind, *texts), []).append(
                    Member(numbers, file, summary)
                )
        for members in groups.values():
            members.sort(key=lambda member: (member.numbers, member.file.path))
            if len(members) > 1 and _have_same_devices(members):
                given = "--numbered-files" if numbered is NumberedFiles.SERIES else ""
                evidence = "their folder is of one process" if process else _evidence(members) or given
                found.append(Series(process or _name(members), members, evidence))
    return found


def _name(members: Sequence[Member]) -> str:
    """Return the name of all files, with `*` for the numbers that differ."""
    parts = [NUMBER.split(member.file.host.removesuffix(OOM)) for member in members]
    return "".join(of_all[0] if len(set(of_all)) == 1 else "*" for of_all in zip(*parts, strict=True))


def _have_same_devices(members: Sequence[Member]) -> bool:
    """Return whether one file has the devices of all. JAX numbers devices over all processes, so ranks differ."""
    largest = max((member.devices for member in members), key=len)
    return all(member.devices <= largest for member in members)


def _evidence(members: Sequence[Member]) -> str:
    """Return the evidence that files with the same devices come from one process, in words; empty without evidence."""
    if len({member.numbers for member in members}) == 1:
        return "their names are equal"
    read = [member for member in members if member.devices]
    steps = [member.summary.step for member in read]
    if len(read) > 1 and min(steps) >= 0:
        return "their steps rise" if _rise(steps) else ""
    times = [member.summary.time_ns for member in read]
    times = times if all(times) else [member.file.modified_ns for member in read]
    if len(read) >= MIN_PAUSED and all(times) and _rise(times, PAUSE_NS):
        return "their times rise"
    is_instant = all(member.summary.kind == RecordingKind.DEVICE_PROFILE for member in read)
    return "their bytes rise" if len(read) >= MIN_RISING and is_instant and _rise([m.bytes for m in read]) else ""


def _rise(values: Sequence[int], least: int = 1) -> bool:
    return all(after - before >= least for before, after in pairwise(values))
