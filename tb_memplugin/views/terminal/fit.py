"""The table of a fit: for each target and choice the largest value that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_memplugin.model.fit import LargestValue
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.terminal.text_table import align


def table(found: Sequence[LargestValue]) -> Iterator[str]:
    """Yield the lines of the table."""
    names = list(dict.fromkeys(name for one in found for name, _ in one.knobs))
    searched = next((one.searched for one in found if one.searched), None)
    rows = [["target", *names, f"largest {searched}" if searched else "fits", "reserved", "left", "repeated"]]
    for one in found:
        knobs, shown = dict(one.knobs), one.largest or one.last
        value = "none" if one.largest is None else str(one.value) if searched else "yes"
        limit, reserved = shown.limit_bytes, shown.reserved_bytes
        left = bytes_text(limit - reserved) if limit and reserved and one.largest else ""
        text = "" if shown.error else bytes_text(reserved)
        rows.append(
            [str(one.target), *(str(knobs[name]) for name in names), value, text, left, str(shown.rematerialized)]
        )
    yield from align(rows, 0)
    for one in found:
        if one.last.error:
            text = ", ".join(f"{name}={value}" for name, value in one.last.candidate.knobs)
            yield f"{one.target} {text}: {one.last.error}"
