"""The explanation of a moment as lines for a terminal: live memory by role and origin, leaks, advice."""

from collections.abc import Iterator, Sequence

from tb_memplugin.analysis.ownership.by_model import BEFORE, NO_PATH
from tb_memplugin.analysis.ownership.classification import NO_FUNCTION, NO_LINE, NOT_MARKED
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.model.kinds import HOST_MEMORY, Axis, RecordingKind
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.explain.explain import ExplainedMoment, Group
from tb_memplugin.questions.kinds.joins import RuntimeToProgramJson
from tb_memplugin.questions.kinds.leaks import LeaksJson, several
from tb_memplugin.questions.recording.advice import lines as advice_lines
from tb_memplugin.questions.recording.kernels import rows as kernel_rows
from tb_memplugin.questions.recording.tree import UNEXPLAINED_OF, TreeLineJson, amount_cells
from tb_memplugin.questions.recording.tree import lines as tree_lines
from tb_memplugin.sizes import bytes_text, counted, percent_text

MAX_LINES = 20  # of sites and of findings; JSON contains all sites
MIN_KEPT_SHARE = 0.01  # of the peak; smaller sites that are kept for one step are left out


def lines(answer: ExplainedMoment) -> Iterator[str]:
    """Format the answer of `explain`. The caller escapes control characters, which names may contain."""
    yield from _moment_lines(answer)
    if "failed_program" in answer:
        for program in answer["failed_program"]["programs"]:
            yield ""
            yield f"The logdir contains {program['title']}, with its buffers: --recording '{program['id']}'"
        if answer["failed_program"]["fits_with"] is not None:
            yield answer["failed_program"]["fits_with"]
    if "out_of_memory" in answer and answer["out_of_memory"]["lines_before"]:
        yield ""
        yield "Before the error:"
        yield ""
        yield from (f"    {line}" for line in answer["out_of_memory"]["lines_before"])


def _moment_lines(answer: ExplainedMoment) -> Iterator[str]:
    yield answer["headline"]
    at = answer["at"]
    if "out_of_memory" in answer:
        yield from (f"  - {sentence}" for sentence in answer["out_of_memory"]["sentences"][2:])
        if not at["bytes"]:
            yield from _holders(answer)
            return  # the text contains only the size of the failed request
    yield ""
    name = " in ".join(filter(None, (answer["recording"]["title"], answer["recording"]["memory"])))
    yield f"{name}: {bytes_text(at['bytes'])} {_state(answer)}:"
    yield ""
    if any(role["role"] != "unknown" for role in answer["roles"]):
        roles = [[*amount_cells(role), role["role"]] for role in answer["roles"]]
        if "unexplained" in answer and answer["unexplained"]["bytes"]:
            roles.append([*amount_cells(answer["unexplained"]), _unexplained(answer)])
        yield from align([["bytes", "share", "role"], *roles], 2)
        yield ""
    marks = answer["recording"]["kind"].startswith("torch")  # PyTorch has no jitted functions
    functions = ("By annotation:", NOT_MARKED) if marks else ("By jitted function:", NO_FUNCTION)
    yield from _tree(answer["model"], "By model path:", NO_PATH, "/")
    yield from _tree(answer["function"], *functions, ": ")
    yield from _tree(answer["source"], "By source:", NO_LINE, None)  # of a chain of frames, the innermost
    if "kernels" in answer:
        yield "Kernels:"
        yield from align(list(kernel_rows(answer["kernels"])), 2)
        yield ""
    yield from _buffers(answer) if "buffers" in answer else _groups(answer)
    if "advice" in answer and answer["advice"]["advice"]:
        yield ""
        yield from advice_lines(answer["advice"])


def _tree(tree: Sequence[TreeLineJson], heading: str, unknown: str, separator: str | None) -> Iterator[str]:
    """Format a tree, unless all of its top-level nodes are for memory of unknown origin."""
    unnamed = (unknown, BEFORE, UNEXPLAINED, *UNEXPLAINED_OF.values())
    if any(node["label"] not in unnamed for node in tree if node["depth"] == 0):
        yield heading
        yield from tree_lines(tree, separator)
        yield ""


def _state(answer: ExplainedMoment) -> str:
    """Describe the bytes: live at a moment, or needed by a program that was never run."""
    used_is = answer["out_of_memory"]["used_is"] if "out_of_memory" in answer else "live"
    at = answer["at"]
    if used_is == "needed":
        return used_is
    if answer["recording"]["axis"] == Axis.INSTANT:
        return f"{used_is} at that moment"
    if at["position"] < 0:
        return f"{used_is} before the first event"
    when = f", {at['time_ns'] / 1e9:.6f} s into the profile" if at["time_ns"] is not None else ""
    step = f", in {at['step']}" if at["step"] else ""
    return f"{used_is} at {'the peak, ' if at['peak'] else ''}#{at['position']}{when}{step}"


def _buffers(answer: ExplainedMoment) -> Iterator[str]:
    cells = [
        [*amount_cells(row), row["op"], row["shape"], row["source"] or "-", row["op_name"] or row["name"] or "-"]
        for row in answer["buffers"]
    ]
    yield from align([["bytes", "share", "op", "shape", "source", "name"], *cells], 2)
    yield from _more(answer["buffers_total"] - len(cells), "buffer")


def _groups(answer: ExplainedMoment) -> Iterator[str]:
    groups, before, rest = answer["groups"], answer["before"], answer["unexplained"]
    cells = [[*amount_cells(g), f"{g['allocations']:,}", _each(g), g["site"]] for g in groups[:MAX_LINES]]
    if before["bytes"]:
        cells.append([*amount_cells(before), "-", "-", BEFORE])
    if rest["bytes"]:
        cells.append([*amount_cells(rest), "-", "-", _unexplained(answer)])
    yield from align([["bytes", "share", "count", "shape", "site"], *cells], 3)
    yield from _more(len(groups) - MAX_LINES, "site", "; --json lists all")
    yield from _holders(answer)
    if "leaks" not in answer:
        return  # a single moment shows no leaks
    yield ""
    counts = "{with_stack:,} of {allocations:,} allocations and {frees_with_stack:,} of {frees:,} frees"
    yield f"With a call stack: {counts.format(**answer['stacks'])}"
    yield from _programs(answer["joins"]) if "joins" in answer else ()
    yield from _findings(answer["leaks"], answer["recording"]["peak_bytes"])


def _holders(answer: ExplainedMoment) -> Iterator[str]:
    """Format the ledger and the phases of a watched job."""
    ledger, phases = answer.get("ledger", []), answer.get("phases", [])
    if ledger:
        yield ""
        held = [[*amount_cells(one), one["holder"]] for one in ledger]
        yield from align([["bytes", "share", "holder"], *held], 2)
    if phases:
        yield ""
        marked = [[bytes_text(one["bytes"]), f"{one['time_ns'] / 1e9:.1f} s", one["phase"]] for one in phases]
        yield from align([["peak", "at", "phase"], *marked], 2)


def _unexplained(answer: ExplainedMoment) -> str:
    """Return the name of the live bytes without a row."""
    if answer["recording"]["memory"] == HOST_MEMORY:
        return "of the job: see the holders below"
    return UNEXPLAINED_OF.get(RecordingKind(answer["recording"]["kind"]), UNEXPLAINED)


def _each(group: Group) -> str:
    return group["shape"] or (f"{bytes_text(group['size'])} each" if group["allocations"] > 1 else "-")


def _programs(joins: RuntimeToProgramJson) -> Iterator[str]:
    """Format the stack and the live allocations of compiled programs."""
    if (stack := joins["stack"]) is not None:
        yield f"{bytes_text(stack['bytes'])} stack = temporaries of {stack['title']}"
    made, unmatched = joins["executable"], joins["unjoined"]
    if not made["allocations"]:
        return
    total = f"By compiled programs: {made['allocations']:,} allocations, {bytes_text(made['bytes'])} in all"
    missing = f"{unmatched['allocations']:,} of them, {bytes_text(unmatched['bytes'])}, match no known program"
    yield f"{total}; {missing if unmatched['allocations'] else 'all match a known program'}"
    for program in joins["programs"][:MAX_LINES]:
        runs = ", running at this moment" if program["running"] else ""
        allocated = (
            f"{bytes_text(program['bytes'])} in {program['allocations']:,}" if program["allocations"] else "none"
        )
        yield f"    {allocated} for {program['title']}{runs}"


def _findings(leaks: LeaksJson, peak_bytes: int) -> Iterator[str]:
    leaking = [finding for finding in leaks["findings"] if finding["verdict"] == "leak"]
    kept = [
        finding
        for finding in leaks["findings"]
        if finding["verdict"] == "kept one step" and max(finding["curve"]) >= MIN_KEPT_SHARE * peak_bytes
    ]
    if leaks["steps"]:
        yield f"Leaks, over {leaks['steps']} {several(leaks['unit'])}: {len(leaking) or 'none found'}"
        if leaks["message"]:
            yield leaks["message"]
    else:
        yield f"Leaks: unknown. {leaks['message']}"
    yield from leaks["retained_gradients"]
    for finding in (leaking + kept)[:MAX_LINES]:
        yield ""
        sure = percent_text(finding["confidence"])
        yield f"{finding['verdict']} ({sure}): {finding['site']} {finding['shape']}".rstrip()
        yield f"    {finding['sentence']}"


def _more(count: int, noun: str, hint: str = "") -> Iterator[str]:
    if count > 0:
        yield f"and {counted(count, f'more {noun}')}{hint}"
