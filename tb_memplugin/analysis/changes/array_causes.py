"""Causes that the arrays at the peak show: layers, saved activations, and results that fusions used to keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from functools import partial

from tb_memplugin.analysis.changes.argument_causes import ArgumentPairs
from tb_memplugin.analysis.changes.ledger import COMPUTED, Ledger, LedgerRow, total
from tb_memplugin.analysis.changes.names import dtype_of, template
from tb_memplugin.analysis.changes.row_paths import UNNAMED
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind
from tb_memplugin.model.memory_facts import ArrayFacts, FusedFacts, MemoryFacts
from tb_memplugin.model.shapes import dimensions

ACTIVATION = "activation"
REPEATED = {"activation", "temporary", "gradient", "output"}
ArrayContent = tuple[str, tuple[int, ...]]  # type and dimensions of an array, whatever their order


def layers(pairs: ArgumentPairs, before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield families of layers of which there are more or fewer now, with the arrays of each."""
    counts = defaultdict[str, Counter[tuple[int, int]]](Counter)
    for old, new in pairs.values():
        if old.layers != new.layers:
            counts[family(new.path) or family(old.path)][old.layers, new.layers] += abs(new.bytes - old.bytes)
    saved_more = _saved_more(before, after)
    for name, found in counts.items():
        (was, now), _ = found.most_common(1)[0]
        contents = {content for content, more in saved_more.items() if _is_multiple(more, now - was)}
        rows = ledger.claim(partial(_of_layers, name=name, was=was, now=now))
        rows += ledger.claim(partial(_is_activation, contents=contents, more=now > was))
        yield ChangeCause(ChangeCauseKind.LAYERS, (name,), total(rows), str(was), str(now))


def _of_layers(row: LedgerRow, name: str, was: int, now: int) -> bool:
    """Return whether a row has as many arrays more as there are layers more, or a multiple of that."""
    if not _is_multiple(row.arrays, now - was):
        return False
    if template(name) in row.template:
        return True
    return row.role in REPEATED and not row.is_new and not row.is_old  # without the layer's name


def _is_multiple(arrays: int, layers: int) -> bool:
    each, rest = divmod(arrays, layers)
    return not rest and each >= 1


def family(path: str) -> str:
    """Return the first layer of a path, `layer_*`; an index with the name before it. Empty without one."""
    keys = path.split("/")
    at = next((i for i, key in enumerate(keys) if "*" in key), -1)
    if at < 0:
        return ""
    return "/".join(keys[at - 1 : at + 1]) if keys[at].startswith("[") and at else keys[at]


def saved(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield layers, functions or scans that save more or fewer activations for the backward pass.

    Activations of one type and size count together: compilers name them after different operations of a fusion.
    """
    more = _saved_more(before, after)
    places = defaultdict[str, set[ArrayContent]](set)
    for content, change in more.items():
        if change:
            side = _places(after if change > 0 else before, content) - _places(before if change > 0 else after, content)
            places[side.most_common(1)[0][0]].add(content)
    for place, changed in places.items():
        number = sum(more[content] for content in changed)
        if not (rows := _claim_saved(ledger, changed, number)):
            continue
        facts, live = after if number > 0 else before, {_content(row.shape) for row in rows}
        largest = next((array for array in facts.saved if _content(array.shape) in live), None)
        count, shape = (largest.layers, largest.shape) if largest else (1, "")
        names = (place,) if place else ()
        yield ChangeCause(ChangeCauseKind.SAVED, names, total(rows), arrays=number, layers=count, shape=shape)


def _claim_saved(ledger: Ledger, contents: Collection[ArrayContent], number: int) -> list[LedgerRow]:
    """Claim the activations of some types and sizes; none where they did not grow, as others are live at the peak.

    At the peak, the memory that a scan saves activations in may still be what it was initialized with.
    """
    for wanted in (_may_be_activation, _is_of_one_side):
        rows = [row for row in ledger.open if wanted(row) and _content(row.shape) in contents]
        if total(rows) * number > 0:
            return ledger.claim(rows.__contains__)
    return []


def _saved_more(before: MemoryFacts, after: MemoryFacts) -> Counter[ArrayContent]:
    """Return how many more activations of each type and size are saved now; negative: fewer."""
    more = Counter[ArrayContent]()
    for sign, facts in ((1, after), (-1, before)):
        for array in facts.saved:
            more[_content(array.shape)] += sign * array.arrays
    return more


def _places(facts: MemoryFacts, content: ArrayContent) -> Counter[str]:
    """Return how many activations of a type and size each layer saves, or else each function."""
    found = Counter[str]()
    for array in facts.saved:
        if _content(array.shape) == content:
            found[place_of(array)] += array.arrays
    return found


def place_of(array: ArrayFacts) -> str:
    """Return the layer of an array, else its function, else its outermost scope; empty where none is known."""
    scope = array.path.partition("/")[0] if "/" in array.path and not array.path.startswith(UNNAMED) else ""
    return family(array.path) or array.function or scope


def _is_activation(row: LedgerRow, contents: Collection[ArrayContent], more: bool) -> bool:
    return row.role == ACTIVATION and (row.arrays > 0) is more and _content(row.shape) in contents


def _may_be_activation(row: LedgerRow) -> bool:
    """Return whether a row is an activation, or has no model path, which could show that it is one."""
    return row.role == ACTIVATION or (row.role in COMPUTED and row.template.startswith(UNNAMED))


def _is_of_one_side(row: LedgerRow) -> bool:
    return row.role in COMPUTED and (row.is_new or row.is_old)


def _content(shape: str) -> ArrayContent:
    return dtype_of(shape), tuple(sorted(dimensions(shape)))


def fusions(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield operations that were computed inside of a fusion and are stored now, and the other way round."""
    for kind, facts in ((ChangeCauseKind.FUSION_SPLIT, before), (ChangeCauseKind.FUSED, after)):
        inside = {(fused.path, fused.shape): fused for fused in facts.fused}
        groups = defaultdict[str, list[tuple[LedgerRow, FusedFacts]]](list)
        split = kind is ChangeCauseKind.FUSION_SPLIT
        for row in ledger.claim(partial(_was_inside, known=inside.keys(), split=split)):
            fused = inside[row.template, row.shape]
            groups[fused.fusion].append((row, fused))
        for name, found in groups.items():
            largest = max((row for row, _ in found), key=lambda row: abs(row.bytes))
            arrays = sum(abs(row.arrays) for row, _ in found)
            grown = total(row for row, _ in found)
            yield ChangeCause(kind, (name,), grown, arrays=arrays, shape=largest.shape, example=largest.path)


def _was_inside(row: LedgerRow, known: Collection[tuple[str, str]], split: bool) -> bool:
    return (row.template, row.shape) in known and row.bytes != 0 and (row.is_new if split else row.is_old)
