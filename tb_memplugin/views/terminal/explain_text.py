"""What is live at a moment, whose it is, and what leaks, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tb_memplugin.analysis.ownership.by_frame import NO_FUNCTION, NO_LINE, NOT_MARKED
from tb_memplugin.analysis.ownership.by_model import BEFORE, NO_PATH
from tb_memplugin.model.kinds import Axis
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.page.advice import lines as advice_lines
from tb_memplugin.views.page.leaks import several
from tb_memplugin.views.shared.weighted_tree import UNEXPLAINED, UNEXPLAINED_OF
from tb_memplugin.views.shared.weighted_tree import lines as tree_lines
from tb_memplugin.views.terminal.text_table import aligned

LINES_LISTED = 20  # of groups and of findings; JSON has all groups
KEPT_SHARE = 100  # what is kept is told from a hundredth of the peak on
# Of a chain of frames the innermost tells enough; of the scopes of a model all do.
TREES: tuple[tuple[str, str, str, str | None], ...] = (
    ("model", "By model path:", NO_PATH, "/"),
    ("function", "By jitted function:", NO_FUNCTION, ": "),
    ("source", "By source:", NO_LINE, None),
)
MARKS = ("function", "By what it is marked as:", NOT_MARKED, ": ")  # PyTorch jits nothing: a tensor is marked


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """What `explain` answers. Names are as the file has them: the caller keeps control characters off the terminal."""
    yield answer["headline"]
    for sentence in answer.get("refusal", {}).get("sentences", [])[2:]:
        yield f"  - {sentence}"
    at = answer["at"]
    if "refusal" in answer and not at["bytes"]:
        return  # the text tells of no memory but the one that was asked for
    yield ""
    yield f"{bytes_text(at['bytes'])} {_state(answer)}:"
    yield ""
    if any(role["role"] != "unknown" for role in answer["roles"]):
        roles = [[bytes_text(role["bytes"]), f"{role['share']:.1%}", role["role"]] for role in answer["roles"]]
        yield from aligned([["bytes", "share", "role"], *roles], 2)
        yield ""
    trees = (TREES[0], MARKS, TREES[2]) if answer["recording"]["kind"].startswith("torch") else TREES
    for tree, heading, nothing, joined_by in trees:
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
    return any(
        node["label"] not in (nothing, BEFORE, UNEXPLAINED, *UNEXPLAINED_OF.values())
        for node in tree
        if node["depth"] == 0
    )


def _state(answer: dict[str, Any]) -> str:
    """What the bytes are and when: of a program that was not let run, no more than needed."""
    used_is = answer.get("refusal", {}).get("used_is", "live")
    return "needed" if used_is == "needed" else f"{used_is} {_moment(answer['at'], answer['recording']['axis'])}"


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
        name = UNEXPLAINED_OF.get(answer["recording"]["kind"], UNEXPLAINED)
        shown.append((rest["bytes"], rest["share"], "-", "-", name))
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
    yield from _joined(answer["joins"]) if "joins" in answer else ()
    yield from _findings(answer["leaks"], answer["recording"]["peak_bytes"])


def _each(group: dict[str, Any]) -> str:
    return group["shape"] or (f"{bytes_text(group['size'])} each" if group["allocations"] > 1 else "-")


def _joined(found: dict[str, Any]) -> Iterator[str]:
    """What executions allocated, and the programs that planned it."""
    made, lost = found["executable"], found["unjoined"]
    if not made["allocations"]:
        return
    told = f"Made by programs: {made['allocations']:,} allocations, {bytes_text(made['bytes'])} in all"
    left = f"{lost['allocations']:,} of them, {bytes_text(lost['bytes'])}, are of no plan we have"
    yield f"{told}; {left if lost['allocations'] else 'each is part of a plan'}"
    for program in found["programs"][:LINES_LISTED]:
        runs = ", running at this moment" if program["running"] else ""
        allocated = (
            f"{bytes_text(program['bytes'])} in {program['allocations']:,}" if program["allocations"] else "none"
        )
        yield f"    {allocated} for {program['title']}{runs}"


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
