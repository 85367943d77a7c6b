"""Budgets of a fleet: devices and programs above a peak, and memories whose devices are too far apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.analysis.fleet.host_names import missing_hosts
from tb_memplugin.errors import InputError
from tb_memplugin.model.fleet import Fleet, KnownCapture
from tb_memplugin.model.kinds import DEVICE_MEMORY
from tb_memplugin.questions.asking.asked import AnswerJson, Asked
from tb_memplugin.questions.compare.baseline_file import PERCENT
from tb_memplugin.questions.fleet.capture import (
    FileProblemJson,
    LeftOutCaptureJson,
    left_out_json,
    problems_json,
)
from tb_memplugin.questions.fleet.words import cause_text, hosts_text, ordered
from tb_memplugin.sizes import bytes_text, counted, percent_text

MAX_LEFT_OUT = 10  # lines


class FleetBrokenJson(TypedDict):
    """A device or program above the allowed peak, or a memory whose devices differ by more than allowed."""

    capture: str
    """The capture."""
    kind: str
    """`peak` of a device, `reserved` of a program, or `spread` of a memory."""
    name: str
    """The device, the program, or the memory."""
    bytes: int
    """The peak, the reserved bytes, or the difference between the largest and the smallest peak."""
    above_bytes: int
    """The bytes above the limit."""
    spread: float | None
    """The spread, for a memory above `--max-spread`."""
    explanation: list[str]
    """The differences from other devices."""


class FleetFailureJson(TypedDict):
    """Hosts, files or devices of a capture on which the check fails."""

    capture: str
    """The capture."""
    kind: str
    """`expect` of `--expect`, or a kind of `--fail-on`."""
    text: str
    """The failure in words."""


class FleetBudgetJson(TypedDict):
    """The check of a fleet."""

    limit_bytes: int | None
    """The value of `--max-peak`."""
    max_spread: float | None
    """The value of `--max-spread`."""
    devices: int
    """The number of devices that were checked."""
    spread: float
    """The largest spread of a memory."""
    broken: list[FleetBrokenJson]
    """The limits that are exceeded, by the most bytes first."""
    expected_hosts: int | None
    """The value of `--expect`."""
    hosts: int
    """The number of hosts with a file; of several captures, the smallest."""
    failures: list[FleetFailureJson]
    """The failures of `--expect` and `--fail-on`."""
    problems: list[FileProblemJson]
    """The files that could not be checked, or not completely."""
    captures: int
    """The number of captures that were checked."""
    left_out: list[LeftOutCaptureJson]
    """The captures that were not checked, newest first; empty with `--all-captures`."""


def fleet_budget(
    fleets: Sequence[Fleet],
    limit: int | None,
    max_spread: float | None,
    left_out: Sequence[KnownCapture],
    expect: int | None,
    fail_on: Sequence[str] = (),
) -> FleetBudgetJson:
    """Check captures; each limit may be None. `max_spread` is relative to the median.

    `expect`: the number of hosts of each capture. `fail_on`: kinds of model/kinds.py: FAIL_ON.
    """
    answers = [FleetAnswer(fleet) for fleet in fleets]
    memories = [(answer, memory) for answer in answers for memory in _checked(answer)]
    broken = [found for pair in memories for found in (*_above(*pair, limit), *_apart(*pair, max_spread))]
    broken += [found for answer in answers for found in _programs(answer, limit)]
    return {
        "limit_bytes": limit,
        "max_spread": max_spread,
        "devices": sum(len(memory.peaks.devices) for _, memory in memories),
        "spread": max((memory.peaks.spread for _, memory in memories), default=0.0),
        "broken": sorted(broken, key=lambda found: -found["above_bytes"]),
        "expected_hosts": expect,
        "hosts": min((len(fleet.hosts) for fleet in fleets), default=0),
        "failures": [
            {"capture": answer.fleet.name, "kind": kind, "text": text}
            for answer in answers
            for kind, text in _failures(answer, expect, fail_on)
        ],
        "problems": [problem for answer in answers for problem in problems_json(answer)],
        "captures": len(fleets),
        "left_out": list(map(left_out_json, left_out)),
    }


def _failures(answer: FleetAnswer, expect: int | None, fail_on: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each failure."""
    hosts, missing = answer.fleet.hosts, missing_hosts(answer.fleet.hosts)
    if expect is not None and len(hosts) != expect:
        yield "expect", f"{counted(len(hosts), 'host')}, {expect:,} expected"
    if "missing" in fail_on and missing is None and expect is None:
        yield "missing", "the names of the hosts do not number them, so that missing ones are unknown: see --expect"
    if "missing" in fail_on and missing:
        yield "missing", f"{counted(len(missing), 'host')} missing: {hosts_text(missing, hosts)}"
    if "unreadable" in fail_on and answer.problems:
        names = ordered([file.host for file in answer.problems])
        yield "unreadable", f"{counted(len(answer.problems), 'file')} with problems: {hosts_text(names, hosts)}"
    far = [device for memory in _checked(answer) for device in memory.peaks.outliers] if "outliers" in fail_on else []
    if far:
        yield "outliers", f"{counted(len(far), 'outlier')}: {hosts_text(ordered([each.host for each in far]), hosts)}"


def share_of(text: str) -> float:
    """Return the share that a percentage such as `5%` means. InputError for other texts."""
    if not (percent := PERCENT.fullmatch(text.strip())):
        raise InputError("Not a share", text, "give a percentage, such as 5%")
    return float(percent[1]) / 100


def fleet_budget_lines(answer: FleetBudgetJson) -> Iterator[str]:
    """Format the check as lines of text."""
    limits = [f"a peak of {bytes_text(answer['limit_bytes'])}"] if answer["limit_bytes"] is not None else []
    limits += (
        [f"a spread of {percent_text(answer['max_spread'], digits=1)}"] if answer["max_spread"] is not None else []
    )
    several = f" of {counted(answer['captures'], 'capture')}" if answer["captures"] > 1 else ""
    count = f"{counted(answer['devices'], 'device')}{several}"
    if not answer["broken"]:
        within = f"Within {' and '.join(limits)}: " if limits else ""
        yield f"{within}{count} checked, spread {percent_text(answer['spread'], digits=1)}."
    for found in answer["broken"]:
        if found["spread"] is not None:
            spread = percent_text(found["spread"], digits=1)
            yield f"{found['capture']}: the peaks of {found['name']} have a spread of {spread}"
        else:
            verb = "reserves" if found["kind"] == "reserved" else "peaks at"
            above = bytes_text(found["above_bytes"])
            yield f"{found['capture']}: {found['name']} {verb} {bytes_text(found['bytes'])}, {above} above the limit"
        yield from (f"    {line}" for line in found["explanation"])
    if answer["broken"]:
        yield f"{counted(len(answer['broken']), 'limit')} exceeded: {' and '.join(limits)}, {count} checked."
    yield from (f"{failure['capture']}: {failure['text']}" for failure in answer["failures"])
    if left_out := answer["left_out"]:
        yield f"Not checked: {counted(len(left_out), 'other capture')}; --all-captures checks all."
    yield from (f"    {each['name']}: {each['text']}" for each in left_out[:MAX_LEFT_OUT] if each["text"])


def _checked(answer: FleetAnswer) -> list[MemoryAnswer]:
    """Return the devices' main memory, or all memories of a capture without it."""
    own = [memory for memory in answer.memories if memory.peaks.memory == DEVICE_MEMORY]
    return own or answer.memories


def _above(answer: FleetAnswer, memory: MemoryAnswer, limit: int | None) -> Iterator[FleetBrokenJson]:
    for device in memory.peaks.devices:
        above = device.summary.peak_bytes - limit if limit is not None else 0
        if above > 0:
            causes = [cause_text(cause, len(answer.fleet.hosts)) for cause in memory.causes(device)]
            yield _broken(answer, "peak", device.name, device.summary.peak_bytes, above, causes)


def _broken(
    answer: FleetAnswer, kind: str, name: str, size: int, above: int, texts: list[str], spread: float | None = None
) -> FleetBrokenJson:
    return {
        "capture": answer.fleet.name,
        "kind": kind,
        "name": name,
        "bytes": size,
        "above_bytes": above,
        "spread": spread,
        "explanation": texts,
    }


def _apart(answer: FleetAnswer, memory: MemoryAnswer, max_spread: float | None) -> Iterator[FleetBrokenJson]:
    peaks = memory.peaks
    if max_spread is None or peaks.spread <= max_spread:
        return
    hosts = len(answer.fleet.hosts)
    smallest = min(peaks.devices, key=lambda device: device.summary.peak_bytes)
    causes = [cause_text(cause, hosts) for end in (peaks.worst, smallest) for cause in memory.causes(end)]
    to = f"to {bytes_text(peaks.largest_bytes)} on {peaks.worst.name}"
    texts = [f"from {bytes_text(peaks.smallest_bytes)} on {smallest.name} {to}", *causes]
    size = peaks.largest_bytes - peaks.smallest_bytes
    above = round(size - max_spread * peaks.median_bytes)
    yield _broken(answer, "spread", peaks.memory, size, above, texts, peaks.spread)


def _programs(answer: FleetAnswer, limit: int | None) -> Iterator[FleetBrokenJson]:
    for program in answer.programs if limit is not None else ():
        above = program.use.reserved_bytes - (limit or 0)
        if above > 0:
            name = f"{program.use.module} on {counted(len(program.hosts), 'host')}"
            yield _broken(answer, "reserved", name, program.use.reserved_bytes, above, [])


class CheckFleetAnswerJson(AnswerJson, FleetBudgetJson):
    """The limits that the devices or programs of a fleet exceed."""


def check_fleet_answer(found: FleetBudgetJson, asked: Asked) -> CheckFleetAnswerJson:
    """Return the check of a fleet."""
    further = [asked.question("fleet", "the worst devices, and why they differ")]
    return asked.answer(CheckFleetAnswerJson, found, next=further)
