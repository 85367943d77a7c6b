"""What is live at the peak or at another moment, whose it is, and what leaks: as JSON, and as terminal lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tb_memplugin.analysis.attribution import By
from tb_memplugin.analysis.breakdown import breakdown
from tb_memplugin.analysis.by_frames import NO_FUNCTION, NO_LINE
from tb_memplugin.analysis.by_model import BEFORE, NO_PATH
from tb_memplugin.analysis.figures import share
from tb_memplugin.analysis.liveset import bytes_by_role, live_rows
from tb_memplugin.analysis.steps import step_at
from tb_memplugin.analysis.traffic import stacked
from tb_memplugin.analysis.usage import peak
from tb_memplugin.errors import InputError
from tb_memplugin.recording import Axis, Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views import device_profile, leaks, memory_profile, memory_viewer, refusal
from tb_memplugin.views.advice import advice
from tb_memplugin.views.advice import lines as advice_lines
from tb_memplugin.views.columns import aligned
from tb_memplugin.views.leaks import several
from tb_memplugin.views.sites import site
from tb_memplugin.views.summary import summary
from tb_memplugin.views.weighed import UNEXPLAINED, weighed
from tb_memplugin.views.weighed import lines as tree_lines

BUFFERS_LISTED = 20  # of a program
LINES_LISTED = 20  # of groups and of findings in the terminal; JSON has all groups
KEPT_SHARE = 100  # what is kept is told from a hundredth of the peak on
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ns": 1}  # micro sign, or mu
MOMENT = re.compile(rf"([0-9]{{1,18}}(?:\.[0-9]{{1,18}})?)\s*({'|'.join(NANOSECONDS)})")
IDS_LISTED = 5
# Of a chain of frames the innermost tells enough; of the scopes of a model all do.
TREES: tuple[tuple[str, str, str, str | None], ...] = (
    ("model", "By model path:", NO_PATH, "/"),
    ("function", "By jitted function:", NO_FUNCTION, ": "),
    ("source", "By source:", NO_LINE, None),
)


def choose(recordings: Sequence[Recording], wanted: str | None, path: str) -> Recording:
    """The one with the largest peak, or the one that `wanted` is the id or a part of the id of. InputError else."""
    if not recordings:
        raise InputError("No program with buffers and no allocator events", path, "profile the work on the device")
    if wanted is None:
        # Of the errors in one text, the one that says most; its peak need not be the largest.
        first = (recording for recording in recordings if recording.refusal is None or not recording.refusal.rank)
        return next(first, recordings[0])
    found = [recording for recording in recordings if wanted == recording.id]
    found = found or [recording for recording in recordings if wanted in recording.id]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(recording.id for recording in (found or recordings)[:IDS_LISTED])
    what = f"{len(found)} recordings are named so" if found else "No such recording"
    raise InputError(what, wanted, f"--recording takes an id, or a part that only one has: {ids}")


def position_of(recording: Recording, text: str) -> int:
    """The position that `1.5s`, `300ms` or `#120` means; -1 is before the first event. InputError otherwise."""
    if numbered := re.fullmatch("#([0-9]{1,18})", text):
        if (position := int(numbered[1])) < recording.length:
            return position
        raise InputError("There is no such position", text, f"give one from #0 to #{recording.length - 1}")
    clock = recording.clock
    if clock is None or not len(clock):
        raise InputError("A program has no clock", text, f"give a position, #0 to #{recording.length - 1}")
    last = f"{clock[-1] / 1e9:.6g}s"
    timed = MOMENT.fullmatch(text)
    if not timed:
        remedy = f"give a time of the profile up to {last}, such as 1.5s or 300ms, or an event, such as #120"
        raise InputError("Not a moment", text, remedy)
    # Whole nanoseconds, for what was rounded when it was printed.
    time = round(float(timed[1]) * NANOSECONDS[timed[2]])
    if time > clock[-1] and not np.isclose(time, clock[-1], rtol=1e-5, atol=0):
        raise InputError("After the last event", text, f"give a time up to {last}")
    return int(np.searchsorted(clock, time, side="right")) - 1


def explain(recording: Recording, at: str | None = None) -> dict[str, Any]:
    """Plain values only. InputError where `at` is no moment of the recording."""
    recording = recording.complete
    position = peak(recording).position if at is None else position_of(recording, at)
    answer = {"recording": summary(recording), "at": moment(recording, position), **_trees(recording, position)}
    if recording.kind == "oom" and (refused := refusal.refused(recording)) is not None:
        told = {"headline": refusal.headline(recording), "refusal": refused}
        return {**told, **answer, **_grouped(recording, position)}
    if recording.kind == device_profile.KIND:
        return {"headline": device_profile.headline(recording), **answer, **_grouped(recording, position)}
    answer["advice"] = advice(recording)["advice"]
    if recording.axis is not Axis.TIME:
        return {"headline": memory_viewer.headline(recording), **answer, **_program(recording, position)}
    return {"headline": memory_profile.headline(recording), **answer, **_allocator(recording, position)}


def _trees(recording: Recording, position: int) -> dict[str, Any]:
    """The same bytes by what they are for, by model path, source and jitted function; each sums up to all."""
    total = breakdown(recording, position).total
    roles = [
        {"role": role.name.lower().replace("_", " "), "bytes": size, "share": share(size, total)}
        for role, size in bytes_by_role(recording, position).items()
    ]
    return {
        "roles": roles,
        "model": weighed(recording, By.MODEL, position, merge=True),
        "source": weighed(recording, By.SOURCE, position),
        # A program is one jitted function.
        "function": weighed(recording, By.FUNCTION, position) if recording.axis is Axis.TIME else [],
    }


def moment(recording: Recording, position: int) -> dict[str, Any]:
    clock = recording.clock
    timed = clock is not None and 0 <= position < len(clock)
    return {
        "position": position,
        "time_ns": int(clock[position]) if clock is not None and timed else None,
        "step": step_at(recording, position),
        "bytes": breakdown(recording, position).total,
        "peak": position == peak(recording).position,
    }


def _program(recording: Recording, position: int) -> dict[str, Any]:
    rows, total = recording.allocations, breakdown(recording, position).total
    largest = live_rows(recording, position)
    return {
        "buffers": [
            {**site(recording, row), "bytes": int(rows.charge[row]), "share": share(int(rows.charge[row]), total)}
            for row in largest[:BUFFERS_LISTED].tolist()
        ],
        "buffers_total": len(largest),
    }


def _allocator(recording: Recording, position: int) -> dict[str, Any]:
    return {
        **_grouped(recording, position),
        "stacks": stacked(recording)._asdict(),
        "leaks": leaks.findings(recording),
    }


def _grouped(recording: Recording, position: int) -> dict[str, Any]:
    live = breakdown(recording, position)
    found = [
        {**site(recording, row), "allocations": count, "bytes": size, "share": share(size, live.total)}
        for row, count, size in zip(live.row.tolist(), live.allocations.tolist(), live.bytes.tolist(), strict=True)
    ]
    return {
        "groups": found,
        "before": {"bytes": live.before, "share": share(live.before, live.total)},
        "unexplained": {"bytes": live.unexplained, "share": share(live.unexplained, live.total)},
    }


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """The same for people. Names are as the file has them: the caller keeps control characters off the terminal."""
    yield answer["headline"]
    for sentence in answer.get("refusal", {}).get("sentences", [])[2:]:
        yield f"  - {sentence}"
    at = answer["at"]
    if "refusal" in answer and not at["bytes"]:
        return  # the text tells of no memory but the one that was asked for
    yield ""
    yield f"{bytes_text(at['bytes'])} live {_moment(at, answer['recording']['axis'])}:"
    yield ""
    if any(role["role"] != "unknown" for role in answer["roles"]):
        roles = [[bytes_text(role["bytes"]), f"{role['share']:.1%}", role["role"]] for role in answer["roles"]]
        yield from aligned([["bytes", "share", "role"], *roles], 2)
        yield ""
    for tree, heading, nothing, joined_by in TREES:
        if _tells(answer[tree], nothing):
            yield heading
            yield from tree_lines(answer[tree], joined_by)
            yield ""
    yield from _buffers(answer) if "buffers" in answer else _groups(answer)
    if answer.get("advice"):
        yield ""
        yield from advice_lines(answer["advice"], answer["recording"]["peak_bytes"])


def _tells(tree: Sequence[dict[str, Any]], nothing: str) -> bool:
    """Whether the tree says of anything but that nothing is known of it."""
    return any(node["label"] not in (nothing, BEFORE, UNEXPLAINED) for node in tree if node["depth"] == 0)


def _moment(at: dict[str, Any], axis: str) -> str:
    if axis == Axis.INSTANT:
        return "at that moment"
    if at["position"] < 0:
        return "before the first event"
    when = f", {at['time_ns'] / 1e9:.6f} s into the profile" if at["time_ns"] is not None else ""
    step = f", in {at['step']}" if at["step"] else ""
    return f"at {'the peak, ' if at['peak'] else ''}#{at['position']}{when}{step}"


def _buffers(answer: dict[str, Any]) -> Iterator[str]:
    cells = [
        [
            bytes_text(row["bytes"]),
            f"{row['share']:.1%}",
            row["op"],
            row["shape"],
            _frame(row),
            row["op_name"] or row["name"] or "-",
        ]
        for row in answer["buffers"]
    ]
    yield from aligned([["bytes", "share", "op", "shape", "source", "name"], *cells], 2)
    yield from _more(answer["buffers_total"] - len(cells), "buffers")


def _frame(row: dict[str, Any]) -> str:
    return next((f"{frame['file']}:{frame['line']}" for frame in row["stack"] if frame["file"]), "-")


def _groups(answer: dict[str, Any]) -> Iterator[str]:
    groups, before, rest = answer["groups"], answer["before"], answer["unexplained"]
    rows = [(g["bytes"], g["share"], f"{g['allocations']:,}", _each(g), g["site"]) for g in groups]
    shown = rows[:LINES_LISTED]
    if before["bytes"]:
        shown.append((before["bytes"], before["share"], "-", "-", BEFORE))
    if rest["bytes"]:
        shown.append((rest["bytes"], rest["share"], "-", "-", UNEXPLAINED))
    cells = [[bytes_text(size), f"{part:.1%}", *texts] for size, part, *texts in shown]
    yield from aligned([["bytes", "share", "count", "shape", "site"], *cells], 3)
    yield from _more(len(rows) - LINES_LISTED, "sites")
    if "leaks" not in answer:
        return  # one moment tells of none
    yield ""
    yield (
        "With a stack: {with_stack:,} of {allocations:,} allocations, {frees_with_stack:,} of {frees:,} frees".format(
            **answer["stacks"]
        )
    )
    yield from _findings(answer["leaks"], answer["recording"]["peak_bytes"])


def _each(group: dict[str, Any]) -> str:
    return group["shape"] or (f"{bytes_text(group['size'])} each" if group["allocations"] > 1 else "-")


def _findings(found: dict[str, Any], peak_bytes: int) -> Iterator[str]:
    leaking = [finding for finding in found["findings"] if finding["verdict"] == "leak"]
    kept = [
        finding
        for finding in found["findings"]
        if finding["verdict"] == "kept one step" and max(finding["curve"]) * KEPT_SHARE >= peak_bytes
    ]
    if found["steps"]:
        yield f"Leaks, over {found['steps']} {several(found['unit'])}: {len(leaking) or 'none found'}"
        if found["message"]:
            yield found["message"]
    else:
        yield f"Leaks: nothing can be said. {found['message']}"
    yield from found["carried"]
    for finding in (leaking + kept)[:LINES_LISTED]:
        yield ""
        yield f"{finding['verdict']} ({finding['confidence']:.0%}): {finding['site']} {finding['shape']}".rstrip()
        yield f"    {finding['sentence']}"


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"and {count:,} more {what}: --json lists them" if what == "sites" else f"and {count:,} more {what}"
