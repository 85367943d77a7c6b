"""Missing hosts, by the gaps in numbered names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NUMBER = re.compile(r"(\d{1,9})", re.ASCII)
ADDRESS = re.compile(r"\d{1,3}(?:[._-]\d{1,3}){3}", re.ASCII)  # numbers of an IP address have gaps
MIN_PRESENT = 0.5  # of the numbers between the smallest and the largest


def missing_hosts(hosts: Iterable[str]) -> list[str]:
    """Return the names that are missing between the smallest and the largest number, in order.

    Names must differ in one number only, and at least half of the numbers must be present.
    """
    names = sorted(set(hosts))
    parts = [NUMBER.split(name) for name in names]
    if len(names) < 3 or len(set(map(len, parts))) != 1 or any(ADDRESS.search(name) for name in names):
        return []
    differing = [at for at in range(len(parts[0])) if len({part[at] for part in parts}) > 1]
    if len(differing) != 1 or not differing[0] % 2:
        return []
    return _gaps(parts, differing[0])


def host_ranges(hosts: Sequence[str]) -> list[tuple[str, str, int]]:
    """Group names, in order of their numbers, whose numbers follow each other: the first, the last and their count."""
    found: list[tuple[str, str, int]] = []
    for host in hosts:
        if found and _follows(found[-1][1], host):
            found[-1] = found[-1][0], host, found[-1][2] + 1
        else:
            found.append((host, host, 1))
    return found


def _follows(before: str, after: str) -> bool:
    """Return whether two names differ in one number, which is larger by 1."""
    a, b = NUMBER.split(before), NUMBER.split(after)
    differing = [at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    return (
        len(a) == len(b)
        and len(differing) == 1
        and differing[0] % 2 == 1
        and int(b[at := differing[0]]) == int(a[at]) + 1
    )


def _gaps(parts: Sequence[Sequence[str]], at: int) -> list[str]:
    present = {int(part[at]): part[at] for part in parts}
    low, high = min(present), max(present)
    if len(present) < MIN_PRESENT * (high - low + 1):
        return []
    width = min(map(len, present.values())) if any(text.startswith("0") for text in present.values()) else 0
    before, after = "".join(parts[0][:at]), "".join(parts[0][at + 1 :])
    return [f"{before}{number:0{width}}{after}" for number in range(low, high + 1) if number not in present]
