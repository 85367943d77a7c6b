"""The text of `tb-memplugin fleet --trend`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_memplugin.model.fleet_trend import TrendBy, TrendSeries
from tb_memplugin.sizes import bytes_text, counted, signed_bytes
from tb_memplugin.views.shared.fleet_text import rise_text
from tb_memplugin.views.shared.text_table import align

MAX_SERIES = 8


def lines(series: Sequence[TrendSeries], by: TrendBy = TrendBy.DAY) -> Iterator[str]:
    """Yield the lines about all series."""
    for number, each in enumerate(series[:MAX_SERIES]):
        yield from [""] if number else []
        yield from _of_series(each, by)
    if len(series) > MAX_SERIES:
        yield f"and {counted(len(series) - MAX_SERIES, 'smaller program')}: see --json"


def _of_series(series: TrendSeries, by: TrendBy) -> Iterator[str]:
    rises = {rise.after: rise for rise in series.rises}
    second = "reserved" if series.is_program else "worst device"
    count = counted(len(series.points), by.value)
    yield f"{series.name}, {'program' if series.is_program else 'median device'}, {count}"
    table = [[by.value, "peak", second, "change", "because"]]
    for at, point in enumerate(series.points):
        growth = point.peak_bytes - series.points[at - 1].peak_bytes if at else 0
        change = signed_bytes(growth) if at in rises else ""
        because = rise_text(rises[at]) if at in rises else ""
        name = point.day if by is TrendBy.DAY else point.capture
        table.append([name, bytes_text(point.peak_bytes), bytes_text(point.largest_bytes), change, because])
    yield from align(table, 0)
