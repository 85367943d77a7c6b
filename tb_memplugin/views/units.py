"""Bytes as people read them: binary units, and called so."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(count: int | None) -> str:
    """Three significant digits: `1.50 GiB`, `71.2 GiB`, `512 B`; a dash where the count is unknown."""
    if count is None:
        return "-"
    value, unit = float(count), 0
    # 999.5 is where three digits round up to four; 1000 KiB reads worse than 0.98 MiB.
    while abs(value) >= 999.5 and unit < len(UNITS) - 1:
        value /= 1024
        unit += 1
    if unit == 0:
        return f"{count} B"
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {UNITS[unit]}"
