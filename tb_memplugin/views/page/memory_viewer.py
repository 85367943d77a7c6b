"""What the Memory Viewer is given: the first view, all rows, a window of the curve, one buffer's details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_memplugin.analysis.address.addresses import addresses, region_numbers, regions_have_addresses
from tb_memplugin.analysis.address.overlap import overlap
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.figures import Figure, figures, share
from tb_memplugin.analysis.usage.live_bytes import buckets, explained_bytes, peak, reserved_bytes
from tb_memplugin.analysis.usage.live_bytes import usage as usage_of
from tb_memplugin.analysis.usage.live_set import bytes_by_role, live_rows
from tb_memplugin.analysis.usage.steps import step_at
from tb_memplugin.analysis.usage.traffic import count_stacks
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.shared import oom
from tb_memplugin.views.shared.payload import Table, compact, encode, narrow
from tb_memplugin.views.shared.sources import sources
from tb_memplugin.views.shared.stack_texts import stack_texts
from tb_memplugin.views.shared.summary import summary

# The first view is for the eye: as many buckets as a wide screen has pixels, and more rows than a screen shows. The
# rest comes with the second request, so that the first stays small whatever the program's size.
FIRST_BUCKETS = 4096
FIRST_ROWS = 512
SHARES_LISTED = 200
UNCOUNTED = {Role.OPTIMIZER_STATE, Role.STATE}


def first_view(recording: Recording) -> bytes:
    """Figures, the curve and the largest buffers at the peak, as tables."""
    curve = _usage_table(recording, 0, recording.length, FIRST_BUCKETS)
    numbers = figures(recording) if recording.refusal is None else oom.figures(recording)
    return encode_first_view(recording, headline(recording), numbers, curve)


def encode_first_view(recording: Recording, headline: str, figures: Sequence[Figure], curve: Table) -> bytes:
    """What every tab's first view has: its words, figures and curve, and the largest rows live at the peak."""
    top = peak(recording)
    largest = live_rows(recording, top.position)[:FIRST_ROWS]
    summed = summary(recording)
    meta = {
        "recording": summed,
        "axis": {"kind": recording.axis.value, "length": recording.length},
        "headline": headline,
        "figures": [figure._asdict() for figure in figures],
        "caveats": summed["caveats"],
        "peak": {"position": top.position},
        "regions": len(recording.regions),
        # Over time it is one event of many, which is marked where it stands.
        "refusal": oom.refused(recording) if recording.axis is not Axis.TIME else None,
    }
    rows = {
        name: compact(column) if isinstance(column, Text) else column
        for name, column in row_table(recording, largest).items()
    }
    listed = {"row": largest.astype(np.uint32), **rows, **_place_table(recording, largest)}
    return encode(meta, {"usage": curve, "rows": listed})


def rows(recording: Recording) -> bytes:
    """Every allocation, its regions, and the program's instructions, as tables."""
    everything = np.arange(len(recording.allocations))
    told: dict[str, Any] = {}
    if recording.free_stack is not None:
        told = {"stacks": count_stacks(recording)._asdict(), "peak_step": step_at(recording, peak(recording).position)}
    # Of a program's buffers the stack's innermost frame says as much: a compiler merges what lies above it.
    stack = {"stack": stack_texts(recording)} if recording.axis is Axis.TIME else {}
    return encode(
        told,
        {
            "rows": {**row_table(recording, everything), **stack},
            "regions": _region_table(recording),
            "program": _position_table(recording),
            **({"spans": _span_table(recording.spans)} if recording.spans is not None else {}),
        },
    )


def usage(recording: Recording, start: int, end: int, count: int) -> bytes:
    """The curve over positions [start, end) in at most `count` buckets, as a table."""
    return encode({"from": start, "to": end}, {"usage": _usage_table(recording, start, end, count)})


def headline(recording: Recording) -> str:
    """The answer in words: how much, of what, and what most of it is."""
    if recording.refusal is not None:
        return oom.headline(recording)
    top = peak(recording)
    if not top.bytes:
        return f"{recording.title} uses no {recording.memory}."
    parts = [
        f"{share(size, top.bytes):.0%} {_plural(role)}"
        for role, size in bytes_by_role(recording, top.position).items()
        if share(size, top.bytes) >= 0.01 or role is Role.UNKNOWN
    ]
    largest = int(live_rows(recording, top.position)[0])
    allocations = recording.allocations
    name = allocations.scope[largest] or allocations.name[largest]
    return (
        f"Peak {bytes_text(top.bytes)} of {bytes_text(reserved_bytes(recording))} reserved in {recording.title}, "
        f"{recording.memory}: {', '.join(parts)}. "
        f"The largest buffer there is {name}, {bytes_text(int(allocations.charge[largest]))}."
    )


def _plural(role: Role) -> str:
    if role is Role.UNKNOWN:
        return "of unknown role"
    word = role.name.lower().replace("_", " ")
    if role in UNCOUNTED:
        return word
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word}s"


def details(recording: Recording, row: int) -> dict[str, Any]:
    """One buffer: everything known of it, its stack, and who else uses its bytes."""
    table = recording.allocations
    shares = overlap(recording, row)
    return {
        "row": row,
        "name": table.name[row],
        "op": table.op[row],
        "op_name": table.scope[row],
        "role": int(roles(recording)[row]),
        "size": int(table.size[row]),
        "unpadded": int(table.requested[row]),
        "shape": table.shape[row],
        "dtype": table.dtype[row],
        "region": _region(recording, int(table.region[row])),
        "offset": int(table.offset[row]),
        "start": int(table.start[row]),
        "end": int(table.end[row]),
        "defined": _position(recording, int(table.defined[row])),
        "last_used": _position(recording, int(table.last_used[row])),
        "stack": _stack(recording, int(table.stack[row])),
        "freed_stack": _stack(recording, int(recording.free_stack[row]) if recording.free_stack is not None else -1),
        "shares": [
            {
                "row": other,
                "name": table.name[other],
                "size": int(table.size[other]),
                "defined": int(table.defined[other]),
                "last_used": int(table.last_used[other]),
                "relation": "same buffer" if same else "same bytes at another time",
            }
            for other, same in zip(
                shares.row[:SHARES_LISTED].tolist(), shares.same_buffer[:SHARES_LISTED].tolist(), strict=True
            )
        ],
        "shares_total": len(shares.row),
    }


def _region(recording: Recording, region: int) -> dict[str, Any] | None:
    """None where it is not known where the buffer lies."""
    if region < 0:
        return None
    regions = recording.regions
    return {
        "index": int(region_numbers(recording)[region]),
        "kind": RegionKind(int(regions.kind[region])).label,
        "size": int(regions.size[region]),
    }


def _stack(recording: Recording, leaf: int) -> list[dict[str, Any]]:
    """Innermost first."""
    frames = recording.stacks.frames(leaf)
    return [{"function": function, "file": file, "line": line} for function, file, line in frames]


def _position(recording: Recording, position: int) -> dict[str, Any]:
    instruction = ""
    if recording.program is not None and 0 <= position < recording.length:
        instruction = recording.program.name[position]
    return {"position": position, "instruction": instruction}


def _usage_table(recording: Recording, start: int, end: int, count: int) -> Table:
    curve = buckets(usage_of(recording), start, end, count)
    return {**curve._asdict(), "position": narrow(curve.position)}


def row_table(recording: Recording, which: I64) -> Table:
    """Rows of the allocation table, as the page knows them."""
    table = recording.allocations
    return {
        "id": table.id[which],
        "name": table.name.take(which),
        "op": table.op.take(which),
        "op_name": table.scope.take(which),
        "source": sources(recording).take(which),
        "shape": table.shape.take(which),
        "dtype": table.dtype.take(which),
        "role": roles(recording)[which],
        "size": table.size[which],
        "unpadded": table.requested[which],
        "charge": table.charge[which],
        "start": narrow(table.start[which]),
        "end": narrow(table.end[which]),
        "defined": narrow(table.defined[which]),
        "last_used": narrow(table.last_used[which]),
        "region": table.region[which],
        "offset": table.offset[which],
        "canonical": table.canonical[which],
    }


def _place_table(recording: Recording, which: I64) -> Table:
    """What the source calls each row's region, and its address; NaN where that is not known."""
    found = addresses(recording, which)
    return {
        "region_index": np.where(found.in_region, found.region.astype(np.float64), np.nan),
        "address": np.where(found.addressed, found.address.astype(np.float64), np.nan),
    }


def _region_table(recording: Recording) -> Table:
    """`base` stacks the regions on one axis of bytes: temporaries first, then the others, each in file order.

    A region is there at positions start <= p < end, as a row is. `index` is what its source calls it, `address`
    where it begins; NaN where that is not known.
    """
    regions, index = recording.regions, region_numbers(recording).astype(np.float64)
    temporary = regions.kind == RegionKind.TEMPORARY
    order = np.argsort(~temporary, kind="stable")
    base = np.zeros(len(regions), dtype=np.int64)
    base[order] = np.cumsum(np.r_[0, regions.size[order]])[:-1]
    kinds, code = np.unique(regions.kind, return_inverse=True)
    labels = Strings.of([RegionKind(kind).label for kind in kinds.tolist()])
    return {
        "kind": Text(code.astype(np.int32), labels),
        "index": index,
        "address": index if regions_have_addresses(recording) else np.full(len(index), np.nan),
        "size": regions.size,
        "base": base,
        "temporary": temporary.astype(np.uint8),
        "start": narrow(regions.start if regions.start is not None else np.full(len(regions), -1)),
        "end": narrow(regions.end if regions.end is not None else np.full(len(regions), recording.length)),
    }


def _span_table(spans: NamedSpans) -> Table:
    return {"name": spans.name, "kind": spans.kind, "start_ns": spans.start_ns, "end_ns": spans.end_ns}


def _position_table(recording: Recording) -> Table:
    """What each position of the axis is: an instruction of the program, or an event of the allocator."""
    program = recording.program
    if program is None:
        return _event_table(recording)
    return {
        "name": program.name,
        "op": program.op,
        "op_name": program.scope,
        "computation": program.computation,
    }


def _event_table(recording: Recording) -> Table:
    n = recording.length
    kind = _event_kinds(recording) if recording.events is None else recording.events
    nothing = Text(np.full(n, -1, dtype=np.int32), Strings.of([]))
    # A moment needs no time; without those of several events the page counts them.
    clock = np.zeros(1, dtype=np.int64) if n == 1 else recording.clock
    times = {"time_ns": clock} if clock is not None else {}
    return {
        "name": kind,
        "op": kind,
        "op_name": nothing,
        "computation": nothing,
        **times,
        "unexplained": usage_of(recording).live - explained_bytes(recording),
    }


def _event_kinds(recording: Recording) -> Text:
    """Where the source has no names of its own: what the rows say that happened."""
    rows, n = recording.allocations, recording.length
    born, freed = rows.start[rows.start >= 0], rows.end[rows.end < n]
    frees = np.zeros(n, dtype=np.int32)
    frees[freed] = 1
    frees[born] = 0
    return Text(frees, Strings.of(["allocation", "free"]))
