"""Causes that a program's arguments show: which there are, their shardings, types and shapes, and donation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from tb_memplugin.analysis.changes.ledger import Ledger, LedgerRow, of_paths, total
from tb_memplugin.analysis.changes.names import common_path, dtype_of, size_of, template
from tb_memplugin.analysis.changes.rescaled import rescaled_from
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind
from tb_memplugin.model.memory_facts import ArgumentFacts, MemoryFacts

COMPUTED = {"activation", "temporary", "gradient", "output"}
MAX_LISTED = 80  # arguments; smaller ones are in no list
MOST = 0.5  # of an argument's bytes that must gain or lose their donation


class ArgumentPair(NamedTuple):
    """An argument before and after."""

    before: ArgumentFacts
    after: ArgumentFacts


ArgumentPairs = dict[str, ArgumentPair]  # by the template of the path


def argument_pairs(before: MemoryFacts, after: MemoryFacts) -> ArgumentPairs:
    """Return the arguments that both sides list."""
    old, new = _by_template(before), _by_template(after)
    return {name: ArgumentPair(old[name], new[name]) for name in new if name in old}


def _by_template(facts: MemoryFacts) -> dict[str, ArgumentFacts]:
    return {template(argument.path): argument for argument in reversed(facts.arguments)}  # the largest wins


def added_and_removed(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield the arguments of one side, if the other side would list them. Arguments with other names are the same."""
    added, removed = _alone(after, before), _alone(before, after)
    for root in added.keys() & removed.keys():
        if _contents(added[root]) == _contents(removed[root]):
            renamed = [*added.pop(root), *removed.pop(root)]
            ledger.claim(of_paths({template(argument.path) for argument in renamed}))
    for kind, roots in ((ChangeCauseKind.ARGUMENT_ADDED, added), (ChangeCauseKind.ARGUMENT_REMOVED, removed)):
        for alone in roots.values():
            rows = ledger.claim(of_paths({template(argument.path) for argument in alone}))
            largest = max(alone, key=lambda argument: argument.bytes)
            path = common_path([argument.path for argument in alone])
            arrays = sum(argument.arrays for argument in alone)
            yield ChangeCause(kind, (path,), total(rows), arrays=arrays, shape=largest.shape)


def _alone(one: MemoryFacts, other: MemoryFacts) -> dict[str, list[ArgumentFacts]]:
    """Return the arguments that only one side has, by the first key of their paths."""
    known = _by_template(other)
    listed = other.arguments[-1].bytes if len(other.arguments) >= MAX_LISTED else -1
    roots = defaultdict[str, list[ArgumentFacts]](list)
    for name, argument in _by_template(one).items():
        if name not in known and argument.bytes > listed:
            roots[name.partition("/")[0]].append(argument)
    return dict(roots)


def _contents(arguments: list[ArgumentFacts]) -> list[tuple[str, int]]:
    return sorted((argument.shape, argument.arrays) for argument in arguments)


def shardings(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of shardings that change the part of a device."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for name, (old, new) in pairs.items():
        if (old.sharding, old.copies) != (new.sharding, new.copies) and old.shape != new.shape:
            found[_sharding_text(old), _sharding_text(new)].append(name)
    for (was, now), names in found.items():
        old_sizes, new_sizes = (
            {size_of(argument.shape) for argument in side}
            for side in zip(*(pairs[name] for name in names), strict=True)
        )  # fmt: skip
        rows = ledger.claim(of_paths(set(names)))
        rows += ledger.claim(_of_sizes(old_sizes, new_sizes))  # such as their gradients
        yield _named(ChangeCauseKind.SHARDING, names, pairs, rows, was, now)


def _sharding_text(argument: ArgumentFacts) -> str:
    if argument.sharding:
        return argument.sharding
    return f"{argument.copies} copies" if argument.copies > 1 else "no copies"


def dtypes(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of number types, of arguments and of everything computed in another type."""
    names = defaultdict[tuple[str, str], list[str]](list)
    for name, (old, new) in pairs.items():
        if dtype_of(old.shape) != dtype_of(new.shape) and size_of(old.shape) == size_of(new.shape):
            names[dtype_of(old.shape), dtype_of(new.shape)].append(name)
    sizes = defaultdict[tuple[str, str], set[tuple[int, ...]]](set)
    for was, now, size in _retyped(ledger):
        sizes[was, now].add(size)
    for was, now in {**dict.fromkeys(names), **dict.fromkeys(sizes)}:
        own, others = names[was, now], sizes[was, now]
        rows = ledger.claim(of_paths(set(own)))
        rows += ledger.claim(_of_types(was, now, others))
        if own:
            yield _named(ChangeCauseKind.DTYPE, own, pairs, rows, was, now)
        else:
            arrays = sum(row.arrays_after for row in rows)
            largest = max(rows, key=lambda row: abs(row.bytes))
            yield ChangeCause(ChangeCauseKind.DTYPE, (), total(rows), was, now, arrays, example=largest.path)


def _retyped(ledger: Ledger) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield (type before, type after, dimensions) of paths whose arrays changed their type and nothing else."""
    old = defaultdict[tuple[str, str, tuple[int, ...]], set[str]](set)
    for row in ledger.open:
        if row.is_old:
            old[row.template, row.role, size_of(row.shape)].add(dtype_of(row.shape))
    for row in ledger.open:
        for was in old.get((row.template, row.role, size_of(row.shape)), ()) if row.is_new else ():
            yield was, dtype_of(row.shape), size_of(row.shape)


def _of_types(was: str, now: str, sizes: Collection[tuple[int, ...]]) -> Callable[[LedgerRow], bool]:
    return lambda row: (
        size_of(row.shape) in sizes
        and ((row.is_old and dtype_of(row.shape) == was) or (row.is_new and dtype_of(row.shape) == now))
    )


def shapes(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of a dimension of arguments, with the arrays that grew with it: a batch, or layers of a scan."""
    found = defaultdict[tuple[int, int], list[str]](list)
    others = list[str]()
    for name, (old, new) in pairs.items():
        a, b = size_of(old.shape), size_of(new.shape)
        changed = {(x, y) for x, y in zip(a, b, strict=False) if x != y}
        if a != b and len(a) == len(b) and len(changed) == 1:
            found[changed.pop()].append(name)
        elif a != b:
            others.append(name)
    for (was, now), names in found.items():
        rows = ledger.claim(of_paths(set(names)))
        rows += ledger.claim(rescaled_from(ledger, was, now))
        places = {_changed_dimension(pairs[name]) for name in names}
        cause = _named(ChangeCauseKind.SHAPE, names, pairs, rows, str(was), str(now))
        yield replace(cause, dimension=places.pop() if len(places) == 1 else None)
    for name in others:
        rows = ledger.claim(of_paths({name}))
        yield _named(ChangeCauseKind.SHAPE, [name], pairs, rows, pairs[name].before.shape, pairs[name].after.shape)


def _changed_dimension(pair: ArgumentPair) -> int:
    """Return the first dimension that differs."""
    sizes = zip(size_of(pair.before.shape), size_of(pair.after.shape), strict=True)
    return next(at for at, (before, after) in enumerate(sizes) if before != after)


def donations(pairs: ArgumentPairs, ledger: Ledger, grown: int) -> Iterator[ChangeCause]:
    """Yield arguments whose memory no result reuses any more, and those whose memory one does now.

    `grown`: the change of the peak in bytes.
    """
    found: dict[ChangeCauseKind, list[str]] = {ChangeCauseKind.NOT_DONATED: [], ChangeCauseKind.DONATED: []}
    for name, (old, new) in pairs.items():
        change = new.donated_bytes / max(new.bytes, 1) - old.donated_bytes / max(old.bytes, 1)
        if abs(change) >= MOST:
            found[ChangeCauseKind.DONATED if change > 0 else ChangeCauseKind.NOT_DONATED].append(name)
    for kind, lost in found.items():
        roots = defaultdict[str, list[str]](list)
        for name in lost:
            roots[name.partition("/")[0]].append(name)
        for names in roots.values():
            cause = _named(kind, names, pairs, ledger.claim(_results_of(set(names))))
            if not cause.bytes:  # each result is below the size that is listed
                size = sum(pairs[name].before.donated_bytes - pairs[name].after.donated_bytes for name in names)
                cause = replace(cause, bytes=size if abs(size) <= abs(grown) else 0)
            yield cause


def _named(
    kind: ChangeCauseKind,
    names: list[str],
    pairs: ArgumentPairs,
    rows: list[LedgerRow],
    before: str = "",
    after: str = "",
) -> ChangeCause:
    """Return a cause of these arguments, named after what the paths of each root have in common."""
    arguments = sorted((pairs[name].after for name in names), key=lambda argument: (-argument.bytes, argument.path))
    roots = defaultdict[str, list[str]](list)
    for argument in arguments:
        roots[argument.path.partition("/")[0]].append(argument.path)
    return ChangeCause(
        kind,
        tuple(map(common_path, roots.values())),
        total(rows),
        before,
        after,
        arrays=sum(argument.arrays for argument in arguments),
        shape=arguments[0].shape,
        example=arguments[0].path,
        role=arguments[0].role,
    )


def _of_sizes(old: Collection[tuple[int, ...]], new: Collection[tuple[int, ...]]) -> Callable[[LedgerRow], bool]:
    def is_one(row: LedgerRow) -> bool:
        size = size_of(row.shape)
        return row.role in COMPUTED and ((row.is_old and size in old) or (row.is_new and size in new))

    return is_one


def _results_of(names: Collection[str]) -> Callable[[LedgerRow], bool]:
    return lambda row: row.template in names and row.role == "output"
