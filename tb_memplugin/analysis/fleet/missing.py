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


def _gaps(parts: Sequence[Sequence[str]], at: int) -> list[str]:
    present = {int(part[at]): part[at] for part in parts}
    low, high = min(present), max(present)
    if len(present) < MIN_PRESENT * (high - low + 1):
        return []
    width = min(map(len, present.values())) if any(text.startswith("0") for text in present.values()) else 0
    before, after = "".join(parts[0][:at]), "".join(parts[0][at + 1 :])
    return [f"{before}{number:0{width}}{after}" for number in range(low, high + 1) if number not in present]
