"""Sizes as people and tools write them, in bytes, and as we write them. Units are never guessed."""

from __future__ import annotations

import re
from decimal import Decimal

from tb_memplugin.errors import InputError

IEC = {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTPE", 1)}
SI = {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGTPE", 1)}
UNITS = {"": 1, "B": 1, "KB": 1000, **SI, **IEC}
LARGEST = 2**63 - 1
LARGEST_PRINTED = 2**53  # what is more is damage, and a few of them would not add up in 64 bits
BINARY = ("B", *IEC)

# Two digits of exponent: a number of a billion digits is no size, and working it out would take all there is.
WRITTEN = re.compile(r"(\d{1,20}(?:\.\d{1,20})?(?:[eE]\+?\d{1,2})?) ?([A-Za-z]{0,3})", re.ASCII)

# How XLA, TensorFlow, TPU runtimes and PyTorch print one: `17.08G`, `1.97GiB`, `20.00 MiB`, `-25.62GiB`, `512B`.
PRINTED = r"(?:-?\d{1,20}(?:\.\d{0,6})?)\s?(?:[KMGTPE]i?B?|B|bytes)"
_PRINTED = re.compile(r"(-?\d{1,20}(?:\.\d{0,6})?)\s?([KMGTPE]?)(i?)(B|bytes)?", re.ASCII)


def parse_size(text: str) -> int:
    """What a person means by `70GiB`, `70 GB`, `5.5e9` or `1048576`. InputError where that is not certain.

    GiB is 1024**3 bytes and GB is 1000**3, as written. `70G` may be either, and `70Gb` may be bits.
    """
    written = WRITTEN.fullmatch(text.strip())
    if not written:
        raise InputError("Not a size", text, "give bytes, or a number with a unit, such as 70GiB or 70GB")
    number, unit = written.groups()
    if unit not in UNITS:
        prefix = unit[:1].upper()
        clear = f"{number}{prefix}iB (1024) or {number}{prefix}B (1000)" if prefix in "KMGTPE" else f"{number}GiB"
        raise InputError("Not a clear size", text, f"write {clear}")
    size = Decimal(number) * UNITS[unit]
    if size > LARGEST:
        raise InputError("Not a size", text, "no memory is that large")
    return int(size.to_integral_value())


def printed_size(text: str, *, decimal: bool = False) -> int | None:
    """Bytes of what a tool printed, `17.08G` or `1.97GiB`; None where it is no size.

    Tools mean powers of 1024, also by `17.94 GB`; `decimal`: this one means powers of 1000 by a unit without an i.
    """
    printed = _PRINTED.fullmatch(text.strip())
    if not printed:
        return None
    number, prefix, binary, _ = printed.groups()
    power = "KMGTPE".index(prefix) + 1 if prefix else 0
    size = Decimal(number) * (1000 if decimal and not binary else 1024) ** power
    return int(size.to_integral_value()) if abs(size) <= LARGEST_PRINTED else None


def bytes_text(count: int | None) -> str:
    """Three significant digits: `1.50 GiB`, `71.2 GiB`, `512 B`; a dash where the count is unknown."""
    if count is None:
        return "-"
    value, unit = float(count), 0
    # 999.5 is where three digits round up to four; 1000 KiB reads worse than 0.98 MiB.
    while abs(value) >= 999.5 and unit < len(BINARY) - 1:
        value /= 1024
        unit += 1
    if unit == 0:
        return f"{count} B"
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {BINARY[unit]}"
