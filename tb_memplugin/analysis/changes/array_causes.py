"""Causes that the arrays at the peak show: layers, saved activations, and results that fusions used to keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from functools import partial

from tb_memplugin.analysis.changes.argument_causes import ArgumentPairs
from tb_memplugin.analysis.changes.ledger import Ledger, LedgerRow, total
from tb_memplugin.analysis.changes.names import dtype_of, template
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind
from tb_memplugin.model.memory_facts import ArrayFacts, FusedFacts, MemoryFacts
from tb_memplugin.model.shapes import dimensions

ACTIVATION = "activation"
REPEATED = {"activation", "temporary", "gradient", "output"}
ArrayContent = tuple[str, tuple[int, ...]]  # type and dimensions of an array, whatever their order


def layers(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield families of layers of which there are more or fewer now, with the arrays of each."""
    counts = defaultdict[str, Counter[tuple[int, int]]](Counter)
    for old, new in pairs.values():
        if old.layers != new.layers:
            counts[family(new.path) or family(old.path)][old.layers, new.layers] += abs(new.bytes - old.bytes)
    for name, found in counts.items():
        (was, now), _ = found.most_common(1)[0]
        rows = ledger.claim(partial(_of_layers, name=name, was=was, now=now))
        yield ChangeCause(ChangeCauseKind.LAYERS, (name,), total(rows), str(was), str(now))


def _of_layers(row: LedgerRow, name: str, was: int, now: int) -> bool:
    """Return whether a row has as many arrays more as there are layers more, or a multiple of that."""
    each, rest = divmod(row.arrays, now - was)
    if rest or each < 1:
        return False
    if template(name) in row.template:
        return True
    return row.role in REPEATED and not row.is_new and not row.is_old  # without the layer's name


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
    old, new = _by_content(before), _by_content(after)
    places = defaultdict[str, set[ArrayContent]](set)
    for content in {**new, **old}:
        change = new[content].total() - old[content].total()
        side = new[content] - old[content] if change > 0 else old[content] - new[content]
        if change:
            places[side.most_common(1)[0][0]].add(content)
    for place, changed in places.items():
        is_changed = partial(_is_activation, contents=changed)
        grown = total(filter(is_changed, ledger.open))
        number = sum(new[content].total() - old[content].total() for content in changed)
        if grown * number <= 0:  # the peak is where other activations are live
            continue
        ledger.claim(is_changed)
        facts = after if number > 0 else before
        largest = next((array for array in facts.saved if _content(array.shape) in changed), None)
        count, shape = (largest.layers, largest.shape) if largest else (1, "")
        names = (place,) if place else ()
        yield ChangeCause(ChangeCauseKind.SAVED, names, grown, arrays=number, layers=count, shape=shape)


def _by_content(facts: MemoryFacts) -> defaultdict[ArrayContent, Counter[str]]:
    """Return the number of activations that each layer saves, or else each function."""
    found = defaultdict[ArrayContent, Counter[str]](Counter)
    for array in facts.saved:
        found[_content(array.shape)][place_of(array)] += array.arrays
    return found


def place_of(array: ArrayFacts) -> str:
    """Return the layer of an array, else its function, else its outermost scope; empty where none is known."""
    return family(array.path) or array.function or (array.path.split("/")[0] if "/" in array.path else "")


def _is_activation(row: LedgerRow, contents: Collection[ArrayContent]) -> bool:
    return row.role == ACTIVATION and _content(row.shape) in contents


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
