"""Events of a plane, read by two threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.xplane.events import select
from tb_memplugin.native.xplane.stats import new_columns, read_stats
from tb_memplugin.readers.common.at_once import BudgetShare, at_once
from tb_memplugin.readers.xplane.planes import Plane

# A thread takes 0.1 ms. Finding the events among 1 MB takes 0.3 ms, and reading those of 1 MB 2.5 ms.
LARGE_BYTES = 1 << 20

Texts = list[bytes | int]  # by code: bytes, or the id of the stat whose name is the text


def select_events(plane: Plane, kinds: Mapping[int, int]) -> dict[str, Any]:
    """Return what `select` returns of the plane, each thread with about half of the lines' bytes."""
    if len(plane.data) < LARGE_BYTES:
        return select(plane.data, kinds, budget=plane.budget)
    lines = plane.lines
    total = np.cumsum(lines.length)
    cut = int(np.searchsorted(total, total[-1:].sum() / 2))
    shares = BudgetShare(plane.budget), BudgetShare(plane.budget)
    pieces = Spans(lines.start[:cut], lines.length[:cut]), Spans(lines.start[cut:], lines.length[cut:])
    first, second = at_once(
        *(partial(select, plane.data, kinds, piece, share) for piece, share in zip(pieces, shares, strict=True))
    )
    second["line"] += cut
    names = [found.pop("line_name") for found in (first, second)]
    return {
        "line_name": Spans(*(np.concatenate(columns) for columns in zip(*names, strict=True))),
        **{name: np.concatenate([first[name], second[name]]) for name in first},
    }


def columns_of(
    plane: Plane, events: Spans, ids: Mapping[int, int], types: Sequence[int]
) -> tuple[list[npt.NDArray[Any]], list[Texts]]:
    """Return what `read_stats` reads of the events into new columns of these types, each thread half of the rows."""
    rows = len(events.start)
    columns = new_columns(rows, types, set(ids.values()))
    if int(events.length.sum()) < LARGE_BYTES:
        return columns, read_stats(plane.data, events.start, events.length, ids, columns, plane.budget)
    pieces = slice(rows // 2), slice(rows // 2, rows)
    shares = BudgetShare(plane.budget), BudgetShare(plane.budget)
    first, second = at_once(
        *(
            partial(
                read_stats,
                plane.data,
                events.start[piece],
                events.length[piece],
                ids,
                [c[piece] for c in columns],
                share,
            )
            for piece, share in zip(pieces, shares, strict=True)
        )
    )
    return columns, [
        _join(mine, others, column[pieces[1]]) for mine, others, column in zip(first, second, columns, strict=True)
    ]


def _join(first: Texts, second: Texts, codes: I32) -> Texts:
    """Return the distinct texts of both halves, and number the `codes` of the second half by them, in place."""
    number = {text: code for code, text in enumerate(first)}
    renumbered = np.array([number.setdefault(text, len(number)) for text in second], dtype=np.int32)
    if (renumbered != np.arange(len(second))).any():
        codes[:] = np.append(renumbered, np.int32(-1))[codes]  # the last entry is for the empty text
    return [*number]
