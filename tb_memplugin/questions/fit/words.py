"""Words about fits: a table with a row for each target and choice, and sentences about what takes the memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten

from markupsafe import Markup

from tb_memplugin.model.fit import LargestValue, MemoryLine, OfTorch, Outcome, parse_remat
from tb_memplugin.model.fit_plan import items_of
from tb_memplugin.questions.asking.html import table
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.sizes import bytes_text, counted, parse_size, percent_text, seconds_text, two_digits

MAX_PARTS = 3
NOTABLE = 1.1  # a ratio of estimated times; smaller ones are within their error
NOTABLE_WORK = 0.01  # of a step's time
MAX_ERROR = 200  # characters of an error beside other answers
ESTIMATED_TIMES = (
    "Times are estimated from operations and bytes. Eight steps on an H100 took 0.93 to 1.14 times as long."
)
OF_KERNELS = (  # libtpu's words about a kernel's own memory: its need, the limit, and the memory's name
    re.compile(r"Scoped allocation with size ([\d.]+[KMG]?) and limit ([\d.]+[KMG]?) exceeded scoped (\w+)"),
    re.compile(r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\).*?space=(\w+)"),
)


def lines(found: Sequence[LargestValue], chosen: Sequence[str]) -> Iterator[str]:
    """Yield the table, and sentences about its rows. `chosen` are the knobs whose values differ."""
    yield from align(_rows(found, chosen), 0)
    yield ""
    yield from _below(found, chosen)


def html(found: Sequence[LargestValue]) -> Markup:
    """Return the same for a notebook."""
    knobs = [dict(one.knobs) for one in found]
    chosen = [name for name in (knobs[0] if knobs else ()) if len({each.get(name) for each in knobs}) > 1]
    heading, *rows = _rows(found, chosen)
    texts = (Markup("<p>{}</p>").format(text) for text in _below(found, chosen))
    return table(heading, rows) + Markup("").join(texts)


def _have_several_targets(found: Sequence[LargestValue]) -> bool:
    return len({one.target for one in found}) > 1 or any(one.smaller for one in found)


def _below(found: Sequence[LargestValue], chosen: Sequence[str]) -> Iterator[str]:
    """Yield the sentences below the table."""
    names = [_choice_text(one, chosen, _have_several_targets(found)) for one in found]
    for one, name in zip(found, names, strict=True):
        yield from (f"{name}: {text}" if name else text for text in sentences(one))
    yield from _fastest(found, names)
    yield from _caveats(found)


def _choice_text(one: LargestValue, chosen: Sequence[str], several: bool) -> str:
    return ", ".join([*([one.target] if several else []), *(f"{dict(one.knobs)[name]}" for name in chosen)])


def _fastest(found: Sequence[LargestValue], names: Sequence[str]) -> Iterator[str]:
    """Yield which choice is the fastest at its largest value, where the times of several are known to differ."""
    rates = {name: _rate(one.largest, one.searched) for one, name in zip(found, names, strict=True) if one.largest}
    known = {name: rate for name, rate in rates.items() if rate}
    if len(known) > 1 and (ratio := max(known.values()) / min(known.values())) > NOTABLE:
        best, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        yield f"Fastest, as estimated: {best}, with {ratio:.1f} times as many {found[0].searched}/s as {least}"


def _rows(found: Sequence[LargestValue], chosen: Sequence[str]) -> list[list[str]]:
    several = _have_several_targets(found)
    searched = next((one.searched for one in found if one.searched), "")
    outcomes = [one.last for one in found]
    compiled = searched and not any(each.is_traced for each in outcomes)
    timed = any(each.step_seconds for each in outcomes)
    before = ["without recomputation by the compiler", *(str(one.without_recomputation or "none") for one in found)]
    return rows_of(
        *([["target", *(one.target for one in found)]] if several else []),
        *([name, *(str(dict(one.knobs)[name]) for one in found)] for name in chosen),
        [f"largest {searched}" if searched else "fits", *map(_answer_text, found)],
        ["reserved", *(size_text(each.reserved_bytes) for each in outcomes)],
        ["left", *map(left_text, outcomes)],
        *([before] if compiled else []),
        *filled("step (estimated)", (seconds_text(each.step_seconds) for each in outcomes)),
        *filled("spent on", map(work_text, outcomes)),
        *([[f"{searched}/s", *(rate_text(each, searched) for each in outcomes)]] if timed and searched else []),
        *filled("VMEM of a kernel", (size_text(each.vmem_bytes) if each.vmem_bytes else "" for each in outcomes)),
        ["bound by", *("" if each.error else parts_text(each) for each in outcomes)],
    )


def rows_of(*columns: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table of columns, each with its heading."""
    return [list(row) for row in zip(*columns, strict=True)]


def filled(heading: str, cells: Iterable[str]) -> list[list[str]]:
    """Return a column if any of its cells has text, else none."""
    column = list(cells)
    return [[heading, *column]] if any(column) else []


def left_text(outcome: Outcome) -> str:
    """Return the bytes that are left of the limit, as text; empty without a limit."""
    return size_text(outcome.left_bytes) if outcome.left_bytes is not None else ""


def work_text(outcome: Outcome) -> str:
    """Return the shares of a step that are not its own operations, such as `recomputation 18%, collectives 4%`."""
    shares = {name: seconds / outcome.step_seconds for name, seconds in outcome.work_seconds.items()}
    notable = [f"{name} {percent_text(share)}" for name, share in shares.items() if share >= NOTABLE_WORK]
    return ", ".join(notable)


def _answer_text(one: LargestValue) -> str:
    if one.last.error:
        return "error"
    if not one.searched:
        return "yes" if one.largest is not None else "no"
    return "none" if one.value is None else str(one.value)


def size_text(size: int | None) -> str:
    """Return a size with one digit more than usual, because it stands beside a limit that it nearly reaches."""
    return bytes_text(size, digits=4)


def rate_text(outcome: Outcome, searched: str) -> str:
    """Return how many items of the searched knob a second takes, on all devices together; empty where it is unknown."""
    rate = _rate(outcome, searched)
    return two_digits(rate) if rate else ""


def _rate(outcome: Outcome, searched: str) -> float:
    return items_of(outcome, searched) / outcome.step_seconds if searched and outcome.step_seconds else 0.0


def parts_text(outcome: Outcome) -> str:
    """Return the largest parts of the peak, as in `activations of layer_* (71 %), logits (20 %)`."""
    peak = outcome.peak_bytes or 1
    return ", ".join(f"{part.name} ({percent_text(part.bytes, peak)})" for part in outcome.parts[:MAX_PARTS])


def sentences(one: LargestValue) -> Iterator[str]:
    """Yield sentences about an answer: how memory rises, what is recomputed, and what failed."""
    if one.largest is None:
        yield verdict(one.last)
        return
    if one.smaller:
        yield _smallest_slice(one)
    if one.line is not None:
        yield f"{line_text(one.line, one.searched)}{_recomputation(one)}"
    elif one.recomputed:
        yield _recomputation(one).removeprefix("; above, ")
    if one.at_end:
        yield f"{one.searched}={one.value} is the last value that was asked for; a larger one may fit"
    if one.failed:
        values = "a value" if len(one.failed) == 1 else f"{len(one.failed):,} values"
        yield f"{values} could not be compiled: {_knobs_text(one.failed[0])}: {shorten(one.failed[0].error, MAX_ERROR)}"


def _smallest_slice(one: LargestValue) -> str:
    before = one.smaller[-1]
    needs = f"needs {size_text(before.reserved_bytes)}" if before.reserved_bytes else f"fails: {before.error}"
    knobs = _knobs_text(one.smaller[-1])
    return f"the smallest slice on which {knobs or 'it'} fits is {one.target}; {before.candidate.target} {needs}"


def _kernel_text(refused: str) -> str:
    """Return what a kernel needs of a chip's own memory, and its limit; empty where the compiler says neither."""
    found = next((match for pattern in OF_KERNELS if (match := pattern.search(refused))), None)
    if found is None:
        return ""
    need, limit = (size_text(parse_size(f"{size}iB" if size[-1] in "KMG" else size)) for size in found.group(1, 2))
    return f"a kernel needs {need} of {found[3].upper()}, and may take {limit}: "


def verdict(outcome: Outcome) -> str:
    """Return whether a candidate fits, in a sentence."""
    name, left = candidate_text(outcome), outcome.left_bytes
    if outcome.reserved_bytes is None:
        return f"{name} could not be compiled: {outcome.error}"
    if outcome.refused:
        return f"{name} does not fit: {_kernel_text(outcome.refused)}{shorten(outcome.refused, MAX_ERROR)}"
    if left is None:
        return f"{name} reserves {size_text(outcome.reserved_bytes)}; its target has no limit, so give a budget"
    reserves = f"it reserves {size_text(outcome.reserved_bytes)} of {size_text(outcome.limit_bytes)}"
    return f"{name} fits: {reserves}" if left >= 0 else f"{name} does not fit: {reserves}, {size_text(-left)} too much"


def line_text(line: MemoryLine, searched: str) -> str:
    """Return a line of memory in words: the fixed bytes by role, and the bytes that each item adds."""
    roles = ", ".join(f"{role.replace('_', ' ')} {size_text(size)}" for role, size in line.fixed_roles.items())
    fixed = f"{size_text(line.fixed_bytes)} fixed{f' ({roles})' if roles else ''}"
    return f"{fixed} + {size_text(line.bytes_per_item)} per item of {searched} up to {line.last_value}"


def _recomputation(one: LargestValue) -> str:
    """Describe the compiler's own recomputation at the first value that has any, and at the largest one."""
    if not one.recomputed:
        return ""
    shown = [one.recomputed[0], *one.recomputed[1:][-1:]]
    texts = []
    for outcome in shown:
        value = dict(outcome.candidate.knobs).get(one.searched)
        flops = (
            f" ({percent_text(outcome.rematerialized_flops, digits=1)} of the operations)"
            if outcome.rematerialized_flops
            else ""
        )
        at = f" at {value}" if one.searched else ""
        texts.append(f"{counted(outcome.rematerialized, 'instruction')}{at}{flops}")
    return f"; above, XLA recomputes: {', '.join(texts)}"


def candidate_text(outcome: Outcome) -> str:
    """Return a candidate's target and knobs."""
    return " ".join(filter(None, (outcome.candidate.target, _knobs_text(outcome), *outcome.candidate.changes)))


def _knobs_text(outcome: Outcome) -> str:
    return ", ".join(f"{name}={value}" for name, value in outcome.candidate.knobs)


def _caveats(found: Sequence[LargestValue]) -> Iterator[str]:
    yield from dict.fromkeys(caveat for one in found for caveat in one.last.caveats)
    if any(one.last.step_seconds for one in found):
        yield ESTIMATED_TIMES
    versions = next((one.last.versions for one in found if one.last.versions), {})
    if versions:
        how = "Traced" if any(one.last.is_traced for one in found) else "Compiled"
        yield f"{how} with {', '.join(f'{name} {version}' for name, version in versions.items())}."


def change_text(change: str) -> str:
    """Describe a change of a record: `donate state` for `donate:state`. Unknown changes are returned unchanged."""
    kind, _, rest = change.partition(":")
    if change == "drop-unused":
        return "drop unused arguments"
    if kind == "remat" and (remat := parse_remat(rest)) is not None:
        return remat.label
    if change in [*OfTorch]:
        return OfTorch(change).label
    if kind == "donate" and rest:
        return f"donate {rest}"
    if kind == "shard" and rest.partition(":")[2]:
        axis, _, arguments = rest.partition(":")
        return f"shard {arguments} over {axis}"
    return rest if kind in ("option", "set") and rest else change
