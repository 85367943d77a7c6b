"""Causes that a program's arguments show: which there are, their shardings, types and shapes, and donation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod

from tb_memplugin.analysis.changes.argument_pairs import ArgumentPair, PairedArguments
from tb_memplugin.analysis.changes.ledger import Ledger, LedgerRow, of_paths, total
from tb_memplugin.analysis.changes.names import common_path, dtype_of, size_of, template
from tb_memplugin.analysis.changes.rescaled import changed_dimensions, rescaled_from
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind
from tb_memplugin.model.memory_facts import ArgumentFacts

COMPUTED = {"activation", "temporary", "gradient", "output"}
LEAST_NAMED = 1e-4  # of the largest of some arguments: smaller ones, such as a counter beside `state/nu`, name none
MOST = 0.5  # of an argument's bytes that must gain or lose their donation
ArgumentPairs = Mapping[str, ArgumentPair]  # by the path after


def added_and_removed(paired: PairedArguments, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield the arguments of one side, together those whose paths begin with one key."""
    for kind, sign, alone in (
        (ChangeCauseKind.ARGUMENT_ADDED, 1, paired.added),
        (ChangeCauseKind.ARGUMENT_REMOVED, -1, paired.removed),
    ):
        roots = defaultdict[str, list[ArgumentFacts]](list)
        for argument in alone:
            roots[argument.path.partition("/")[0]].append(argument)
        for arguments in roots.values():
            rows = ledger.claim(of_paths(argument.path for argument in arguments))
            largest = max(arguments, key=lambda argument: argument.bytes)
            arrays = sum(argument.arrays for argument in arguments)
            size = total(rows) or sign * sum(argument.bytes for argument in arguments)  # small ones have no rows
            yield ChangeCause(kind, (_common_name(arguments),), size, arrays=arrays, shape=largest.shape)


def shardings(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield changes of shardings that change the part of a device, with the arrays whose part changed alike."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for name, (old, new) in pairs.items():
        if (old.sharding, old.copies) != (new.sharding, new.copies) and old.shape != new.shape:
            found[_sharding_text(old), _sharding_text(new)].append(name)
    for (was, now), names in found.items():
        sizes = [(size_of(pairs[name].before.shape), size_of(pairs[name].after.shape)) for name in names]
        changed = {(old, new) for one in sizes for old, new in changed_dimensions(*one) if old}
        parts = [rescaled_from(ledger, factor) for factor in {Fraction(new, old) for old, new in changed}]
        rows = ledger.claim(of_paths(names))
        rows += ledger.claim(_of_sizes({old for old, _ in sizes}, {new for _, new in sizes}))  # such as their gradients
        rows += ledger.claim(partial(_is_any, tests=parts))
        yield _named(ChangeCauseKind.SHARDING, names, pairs, rows, was, now)


def _is_any(row: LedgerRow, tests: Iterable[Callable[[LedgerRow], bool]]) -> bool:
    return any(test(row) for test in tests)


def _is_resharded(old: ArgumentFacts, new: ArgumentFacts, devices: tuple[int, int]) -> bool:
    """Return whether another sharding is all that changed the shape of an argument on a device."""
    if (old.sharding, old.copies) == (new.sharding, new.copies):
        return False
    whole = (
        prod(size_of(argument.shape)) * count // max(argument.copies, 1)
        for argument, count in zip((old, new), devices, strict=True)
    )
    return next(whole) == next(whole)


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
        rows = ledger.claim(of_paths(own))
        rows += ledger.claim(_of_types(was, now, others | _sizes_of_both(ledger, was, now)))
        if own:
            yield _named(ChangeCauseKind.DTYPE, own, pairs, rows, was, now)
        elif rows:  # none where an array of several types has another cause already
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


def _sizes_of_both(ledger: Ledger, was: str, now: str) -> set[tuple[int, ...]]:
    """Return dimensions of which there are arrays of the one type that are gone, and of the other that are new."""
    gone = {size_of(row.shape) for row in ledger.open if row.is_old and dtype_of(row.shape) == was}
    return {size_of(row.shape) for row in ledger.open if row.is_new and dtype_of(row.shape) == now} & gone


def _of_types(was: str, now: str, sizes: Collection[tuple[int, ...]]) -> Callable[[LedgerRow], bool]:
    return lambda row: (
        size_of(row.shape) in sizes
        and ((row.is_old and dtype_of(row.shape) == was) or (row.is_new and dtype_of(row.shape) == now))
    )


def shapes(pairs: ArgumentPairs, ledger: Ledger, devices: tuple[int, int]) -> Iterator[ChangeCause]:
    """Yield changes of a dimension of arguments, with the arrays that grew with it: a batch, or layers of a scan.

    `devices`: before and after, by which arguments may be split.
    """
    found = defaultdict[tuple[int, int], list[str]](list)
    others = list[str]()
    for name, (old, new) in pairs.items():
        a, b = size_of(old.shape), size_of(new.shape)
        if a == b or _is_resharded(old, new, devices):
            continue
        if len(changed := changed_dimensions(a, b)) == 1 and len(a) == len(b):
            found[changed.pop()].append(name)
        else:
            others.append(name)
    for (was, now), names in found.items():
        rows = ledger.claim(of_paths(names))
        rows += ledger.claim(rescaled_from(ledger, Fraction(now, was))) if was else []
        places = {_changed_dimension(pairs[name]) for name in names}
        cause = _named(ChangeCauseKind.SHAPE, names, pairs, rows, str(was), str(now))
        yield replace(cause, dimension=places.pop() if len(places) == 1 else None)
    for name in others:
        rows = ledger.claim(of_paths([name]))
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
    groups = [(kind, names) for kind, every in found.items() for names in _by_root(every)]
    claimed = [ledger.claim(_results_of(names)) for _, names in groups]
    for (kind, names), rows in zip(groups, claimed, strict=True):
        # JAX gives donated memory to any result of the same shape, so that another result may be without.
        sizes = {size_of(argument.shape) for name in names for argument in pairs[name]}
        rows += ledger.claim(_results_of_sizes(sizes, kind is ChangeCauseKind.NOT_DONATED))
        cause = _named(kind, names, pairs, rows)
        if not cause.bytes:  # each result is below the size that is listed
            size = sum(pairs[name].before.donated_bytes - pairs[name].after.donated_bytes for name in names)
            cause = replace(cause, bytes=size if abs(size) <= abs(grown) else 0)
        yield cause


def _by_root(names: Iterable[str]) -> list[list[str]]:
    """Group paths by their first key."""
    roots = defaultdict[str, list[str]](list)
    for name in names:
        roots[name.partition("/")[0]].append(name)
    return list(roots.values())


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
    return ChangeCause(
        kind,
        tuple(map(common_path, _by_root(argument.path for argument in arguments))),
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


def _results_of(names: Iterable[str]) -> Callable[[LedgerRow], bool]:
    templates = set(map(template, names))
    return lambda row: row.template in templates and row.role == "output"


def _results_of_sizes(sizes: Collection[tuple[int, ...]], come: bool) -> Callable[[LedgerRow], bool]:
    return lambda row: row.role == "output" and size_of(row.shape) in sizes and (row.bytes > 0) is come


def _common_name(arguments: Sequence[ArgumentFacts]) -> str:
    """Return what the paths of arguments have in common, those of the smallest left out."""
    least = LEAST_NAMED * max(argument.bytes for argument in arguments)
    return common_path([argument.path for argument in arguments if argument.bytes >= least])
