"""The allocations that are live at one position, their bytes by site, and the figures that summarize a program."""

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.figure_definitions import PROGRAM, Figure, define
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, reserved_bytes, usage
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations
from tb_memplugin.native.row_groups import group_rows

UNEXPLAINED = "explained by no allocation"


def live_rows(recording: Recording, position: int) -> I64:
    """Return the rows that are charged for memory at a position, largest first."""
    rows = recording.allocations
    live = np.flatnonzero(rows.live_at(position) & (rows.charge > 0))
    return live[np.argsort(-rows.charge[live], kind="stable")]


def bytes_by_role(recording: Recording, position: int) -> dict[Role, int]:
    """Return the live bytes of each role, largest first; roles without live bytes are left out."""
    rows = live_rows(recording, position)
    sums = np.bincount(roles(recording)[rows], recording.allocations.charge[rows], len(Role))
    return {Role(role): int(sums[role]) for role in np.argsort(-sums, kind="stable").tolist() if sums[role]}


def group_by_site(rows: Allocations, which: I64, *, sized: bool = True) -> tuple[I64, int]:
    """Return the site number of each row in `which`, 0..k-1, and k, at least 1.

    A site is a stack, op and name; with `sized`, also a shape, dtype and size.
    """
    content = (rows.shape.codes, rows.dtype.codes, rows.requested) if sized else ()
    found = group_rows(column[which] for column in (rows.stack, rows.op.codes, rows.name.codes, *content))
    return found.number, max(len(found.first), 1)


class Breakdown(NamedTuple):
    """Groups in order of their bytes, largest first. `bytes.sum() + before + unexplained == total`."""

    row: I64  # the largest allocation of each group
    allocations: I64
    bytes: I64
    before: int  # bytes allocated before the recording
    unexplained: int  # bytes of no known allocation, such as those reserved for the stack
    total: int

    @property
    def whole(self) -> int:
        """The bytes that are 100 %: more than the total if the rows exceed the bytes in use."""
        return self.total - min(self.unexplained, 0)


def breakdown(recording: Recording, position: int) -> Breakdown:
    """Group the allocations that are live at `position` by site; -1 is before the first event."""
    rows = recording.allocations
    live = live_rows(recording, position)
    over_time = recording.axis is Axis.TIME
    early = live[rows.start[live] < 0] if over_time else live[:0]
    own = live[rows.start[live] >= 0] if over_time else live
    group, _ = group_by_site(rows, own)
    _, first = np.unique(group, return_index=True)  # live rows come largest first
    count = np.bincount(group, recording.allocation_counts(own), len(first)).astype(np.int64)
    size = np.bincount(group, rows.charge[own], len(first)).astype(np.int64)
    order = np.argsort(-size, kind="stable")
    charged = int(rows.charge[live].sum())
    rest = unexplained_bytes(recording, position)
    return Breakdown(
        row=own[first][order],
        allocations=count[order],
        bytes=size[order],
        before=int(rows.charge[early].sum()),
        unexplained=rest,
        total=charged + rest,
    )


def unexplained_bytes(recording: Recording, position: int) -> int:
    """Return the bytes in use at `position` that no row is charged for; 0 before the first event."""
    if not 0 <= position < recording.length:
        return 0
    return int(usage(recording).live[position] - explained_bytes(recording)[position])


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order; `bytes` is None if the recording does not contain the figure."""
    top = peak(recording)
    rows, regions = recording.allocations, recording.regions
    live = live_rows(recording, top.position)
    padding = int(np.minimum(rows.size[live] - rows.requested[live], rows.charge[live]).sum())
    temporary = regions.kind == RegionKind.TEMPORARY

    def region_bytes(kind: RegionKind) -> int:
        return int(regions.size[(regions.kind & kind) != 0].sum())

    in_region = live[rows.region[live] >= 0]  # rows of recordings without regions are in none
    live_temporary = int(rows.charge[in_region][temporary[rows.region[in_region]]].sum())
    reported = [define(PROGRAM, "reported_peak", recording.reported_peak)] if recording.is_main_memory else []
    return [
        define(PROGRAM, "live_peak", top.bytes),
        define(PROGRAM, "reserved", reserved_bytes(recording)),
        define(PROGRAM, "capacity", recording.capacity),
        *reported,
        define(PROGRAM, "arguments", region_bytes(RegionKind.PARAMETER)),
        define(PROGRAM, "outputs", region_bytes(RegionKind.OUTPUT)),
        define(PROGRAM, "temporaries", int(regions.size[temporary].sum())),
        define(PROGRAM, "constants", region_bytes(RegionKind.CONSTANT)),
        define(PROGRAM, "padding", padding),
        define(PROGRAM, "fragmentation", int(regions.size[temporary].sum()) - live_temporary),
    ]  # fmt: skip


def share(part: int, whole: int) -> float:
    """Return part / whole, or 0 if `whole` is 0."""
    return float(np.divide(part, whole)) if whole else 0.0
