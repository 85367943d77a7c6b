"""Parsing and formatting of sizes in bytes, and formatting of counts and times. Units are never guessed."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from tb_memplugin.errors import InputError

IEC = {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTPE", 1)}
SI = {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGTPE", 1)}
UNITS = {"": 1, "B": 1, "KB": 1000, **SI, **IEC}
MAX_SIZE = 2**63 - 1
MAX_PRINTED = 2**53  # larger sizes come from damaged text, and the sum of a few would overflow 64 bits
BINARY = ("B", *IEC)
MINUS = "\N{MINUS SIGN}"  # of sentences and tables; CSV and JSON have hyphens, which programs read

# At most two digits of exponent: 1e999999999 would exhaust memory when evaluated.
WRITTEN = re.compile(r"(\d{1,20}(?:\.\d{1,20})?(?:[eE]\+?\d{1,2})?) ?([A-Za-z]{0,3})", re.ASCII)

# Sizes as XLA, TensorFlow, TPU runtimes and PyTorch print them: `17.08G`, `1.97GiB`, `20.00 MiB`, `-25.62GiB`, `512B`.
# None begins inside a number: in a row of digits, each would be tried as the first one.
PRINTED = r"(?:(?<!\d)-?\d{1,20}(?:\.\d{0,6})?)\s?(?:[KMGTPE]i?B?|B|bytes)"
_PRINTED = re.compile(r"(-?\d{1,20}(?:\.\d{0,6})?)\s?([KMGTPE]?)(i?)(B|bytes)?", re.ASCII)


def parse_size(text: str) -> int:
    """Parse a size that a user wrote, such as `70GiB`, `70 GB`, `5.5e9` or `1048576`, into bytes.

    GiB is 1024**3 bytes and GB is 1000**3. InputError for other units: `70G` may be either, and `70Gb` may be bits.
    """
    written = WRITTEN.fullmatch(text.strip())
    if not written:
        raise InputError("Not a size", text, "give bytes, or a number with a unit, such as 70GiB or 70GB")
    number, unit = written.groups()
    if unit not in UNITS:
        prefix = unit[:1].upper()
        clear = f"{number}{prefix}iB (1024) or {number}{prefix}B (1000)" if prefix in "KMGTPE" else f"{number}GiB"
        raise InputError("Ambiguous size", text, f"write {clear}")
    size = Decimal(number) * UNITS[unit]
    if size > MAX_SIZE:
        raise InputError("Not a size", text, "give less than 8EiB")
    return int(size.to_integral_value())


def printed_size(text: str, *, decimal: bool = False) -> int | None:
    """Parse a size that a tool printed, such as `17.08G` or `1.97GiB`, into bytes; None where it is no size.

    Most tools mean powers of 1024, even by `17.94 GB`. With `decimal`, a unit without an i means powers of 1000.
    """
    printed = _PRINTED.fullmatch(text.strip())
    if not printed:
        return None
    number, prefix, binary, _ = printed.groups()
    power = "KMGTPE".index(prefix) + 1 if prefix else 0
    size = Decimal(number) * (1000 if decimal and not binary else 1024) ** power
    return int(size.to_integral_value()) if abs(size) <= MAX_PRINTED else None


def bytes_text(count: int | None, digits: int = 3) -> str:
    """Format bytes with significant digits: `1.50 GiB`, `71.2 GiB`, `512 B`; a dash where they are unknown."""
    if count is None:
        return "-"
    if count < 0:
        return f"{MINUS}{bytes_text(-count, digits)}"
    value, unit = float(count), 0
    # From 999.5 on, three digits round up to four, and 0.98 MiB is easier to read than 1000 KiB.
    while value >= 999.5 and unit < len(BINARY) - 1:
        value /= 1024
        unit += 1
    if unit == 0:
        return f"{count} B"
    decimals = (2 if value < 9.995 else 1 if value < 99.95 else 0) + digits - 3
    # Sizes are multiples of powers of two, so halves are common: 1.125 MiB is 1.13, as on the page and in school.
    tenths, whole = 10**decimals, 1024**unit
    number = (2 * int(count) * tenths + whole) // (2 * whole)
    fraction = f".{number % tenths:0{decimals}}" if decimals else ""
    return f"{number // tenths}{fraction} {BINARY[unit]}"


def signed_bytes(count: int) -> str:
    """Format a difference in bytes: `+1.50 GiB`."""
    return f"{'+' if count > 0 else ''}{bytes_text(count)}"


def signed_percent(part: float) -> str:
    """Format a relative difference: `+12.5%`."""
    return f"{part:+.1%}".replace("-", MINUS)


def bytes_of_text(part: int, whole: int) -> str:
    """Return `3.67 of 15.8 GiB`; `512 MiB of 15.8 GiB` where the units differ."""
    [number, unit], total = bytes_text(part).split(), bytes_text(whole)
    return f"{number if total.endswith(f' {unit}') else bytes_text(part)} of {total}"


def percent_text(part: float, whole: float = 1, digits: int = 0) -> str:
    """Format a share in percent, halves up as the page does: `63%` of 5 in 8, and `<1%` for less than one percent."""
    percent = 100 * part / whole if whole else 0.0
    if not digits and 0 < percent < 1:
        return "<1%"
    return f"{math.floor(percent * 10**digits + 0.5) / 10**digits:.{digits}f}%"


def seconds_text(seconds: float, digits: int = 2) -> str:
    """Return a time as in `84 ms`, an estimate with the two digits that it has; empty where it is unknown or 0."""
    if not seconds > 0:
        return ""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    unit, name = next((pair for pair in units if seconds >= pair[0]), (1e-9, "ns"))
    decimals = max(digits - 1 - math.floor(math.log10(seconds / unit)), 0)
    return f"{two_digits(seconds / unit) if digits == 2 else f'{seconds / unit:,.{decimals}f}'} {name}"


def two_digits(number: float) -> str:
    """Return an estimate with the two digits that it has: 84, 1,200, 3.1 or 0.042."""
    if 0 < number < 0.95:
        return f"{number:.2g}"
    return f"{float(f'{number:.2g}'):,.{0 if number >= 9.95 else 1}f}"


def counted(count: int, noun: str) -> str:
    """Return `1 tensor` or `1,234 tensors`."""
    return f"{count:,} {noun}{agree(count, '', 's')}"


def agree(count: int, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with a count."""
    return singular if count == 1 else plural
