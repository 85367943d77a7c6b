"""Names of hosts that count them: those that are missing, and ranges of those that follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

NUMBER = re.compile(r"(\d{1,9})", re.ASCII)
ADDRESS = re.compile(r"\d{1,3}(?:[._-]\d{1,3}){3}", re.ASCII)  # numbers of an IP address have gaps
# Kubernetes ends the names of a job's pods with five of its letters, as in train-slice-0-12-x7k2v.
POD = re.compile(r"(.*\d)-[bcdfghjklmnpqrstvwxz2456789]{5}")
# Words before numbers that begin at 0: w-0 of Cloud TPU, and indices of processes. On-premises nodes often begin at 1.
FROM_ZERO = re.compile(r"(?:\b|_)(?:w|rank|proc|process|task|worker|shard|replica|slice)[-_]?\Z")
MIN_PRESENT = 0.5  # a choice: if fewer of the numbers in the range have a host, gaps are not missing hosts
MAX_COUNTED = 2  # numbers in a name that count: of a slice, and of a host in it


def missing_hosts(hosts: Iterable[str]) -> list[str] | None:
    """Return the names that are missing between others, in order; None where the names do not number the hosts.

    Names must differ in one or two numbers only, as slice-3-w-12 does, and at least MIN_PRESENT must be present.
    Names of pods are without their random end.
    """
    names = sorted(set(hosts))
    pods = [POD.fullmatch(name) for name in names]
    stems = sorted({pod[1] for pod in pods if pod}) if all(pods) else names
    parts = [NUMBER.split(name) for name in stems]
    if not names:
        return []
    if len(set(map(len, parts))) != 1 or any(ADDRESS.search(name) for name in stems):
        return None
    differing = [at for at in range(len(parts[0])) if len({part[at] for part in parts}) > 1]
    if not 0 < len(differing) <= MAX_COUNTED or any(at % 2 == 0 for at in differing):
        return None
    return _gaps(parts, differing)


def _gaps(parts: Sequence[Sequence[str]], counted: Sequence[int]) -> list[str] | None:
    """Return the missing names. `counted`: the places of the numbers in the parts of names."""
    present = {tuple(int(part[at]) for at in counted) for part in parts}
    ranges = [
        range(_first(parts[0], at, min(numbers)), max(numbers) + 1)
        for at, numbers in zip(counted, zip(*present, strict=True), strict=True)
    ]
    if len(present) < MIN_PRESENT * prod(map(len, ranges)):
        return None
    widths = [_width({part[at] for part in parts}) for at in counted]
    found = []
    for numbers in product(*ranges):
        if numbers not in present:
            name = list(parts[0])
            for at, number, width in zip(counted, numbers, widths, strict=True):
                name[at] = f"{number:0{width}}"
            found.append("".join(name))
    return found


def _first(parts: Sequence[str], at: int, lowest: int) -> int:
    """Return the number with which counting begins. A JobSet counts its jobs and their pods from 0: train-0-12."""
    of_job_set = parts[at - 1] == "-" or parts[at + 1] == "-"
    return 0 if lowest == 1 and (of_job_set or FROM_ZERO.search(parts[at - 1].lower())) else lowest


def _width(texts: Iterable[str]) -> int:
    """Return the width of numbers that are filled with zeros; 0 for others."""
    known = [*texts]
    return min(map(len, known)) if any(len(text) > 1 and text.startswith("0") for text in known) else 0


def host_ranges(hosts: Sequence[str]) -> list[tuple[str, str, int]]:
    """Group ordered names whose numbers follow each other. Return each group's first and last name and its size."""
    found: list[tuple[str, str, int]] = []
    for host in hosts:
        if found and _follows(found[-1][1], host):
            found[-1] = found[-1][0], host, found[-1][2] + 1
        else:
            found.append((host, host, 1))
    return found


def _follows(before: str, after: str) -> bool:
    """Return whether two names differ in one number only, by 1."""
    a, b = NUMBER.split(before), NUMBER.split(after)
    differing = [at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    return (
        len(a) == len(b)
        and len(differing) == 1
        and differing[0] % 2 == 1
        and int(b[at := differing[0]]) == int(a[at]) + 1
    )
