"""Causes of change in a program's arguments, paired before and after: shardings, types, shapes, and donation."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod
from operator import attrgetter
from typing import NamedTuple, TypeVar

from tb_memplugin.analysis.compare.facts import MAX_ROWS, take_pairs
from tb_memplugin.analysis.compare.ledger import (
    COMPUTED_OR_OUTPUT,
    Ledger,
    LedgerRow,
    changed_dimensions,
    claim,
    total,
)
from tb_memplugin.analysis.compare.stable_paths import common_path, dtype_of, size_of, template
from tb_memplugin.analysis.ownership.by_model import COPIES
from tb_memplugin.model.changes import ArgumentFacts, ChangeCause, ChangeCauseKind, MemoryFacts

T = TypeVar("T")


class ArgumentPair(NamedTuple):
    """An argument before and after, which may have another name."""

    before: ArgumentFacts
    after: ArgumentFacts


class PairedArguments(NamedTuple):
    """The arguments of both sides, and those that only one side has."""

    pairs: dict[str, ArgumentPair]  # by the path after
    added: list[ArgumentFacts]
    removed: list[ArgumentFacts]
    moved_in: list[ArgumentFacts]  # from another memory
    moved_out: list[ArgumentFacts]


def paired_arguments(before: MemoryFacts, after: MemoryFacts) -> PairedArguments:
    """Pair the arguments of both sides: by equal path, then by equal path without numbers, then by equal content.

    An argument without a partner may be too small for the list of the other side. Such an argument is neither added nor
    removed.
    """
    removed, added = list(before.arguments), list(after.arguments)
    keys: tuple[Callable[[ArgumentFacts], Hashable], ...] = (
        attrgetter("path"),
        lambda argument: template(argument.path),
        attrgetter("shape", "arrays"),
    )
    pairs = [ArgumentPair(*pair) for key in keys for pair in take_pairs(removed, added, key, _rank)]
    moved_in, added = _parted(added, set(before.elsewhere) - set(after.elsewhere))
    moved_out, removed = _parted(removed, set(after.elsewhere) - set(before.elsewhere))
    return PairedArguments(
        {pair.after.path: pair for pair in pairs},
        [argument for argument in added if argument.bytes > _least_listed(before)],
        [argument for argument in removed if argument.bytes > _least_listed(after)],
        moved_in,
        moved_out,
    )


def _parted(arguments: list[ArgumentFacts], paths: Collection[str]) -> tuple[list[ArgumentFacts], list[ArgumentFacts]]:
    """Return the arguments with one of these paths, which have * for each number, and the others."""
    found = [argument for argument in arguments if template(argument.path) in paths]
    return found, [argument for argument in arguments if argument not in found]


def _rank(old: ArgumentFacts, new: ArgumentFacts) -> tuple[int, str]:
    """Rank partners by the keys that both paths begin and end with: `state/mu/w` is paired with `state/trace/w`."""
    one, other = old.path.split("/"), new.path.split("/")
    in_common = sum(
        next((i for i, (x, y) in enumerate(zip(p, q, strict=False)) if x != y), min(len(p), len(q)))
        for p, q in ((one, other), (one[::-1], other[::-1]))
    )
    return -in_common, new.path


def _least_listed(facts: MemoryFacts) -> int:
    """Return the size that an argument must exceed to be on a side's list; -1 where the list contains all arguments."""
    return facts.arguments[-1].bytes if len(facts.arguments) >= MAX_ROWS else -1


# A group of arguments is named after the common part of its members' paths, except for members below this share of the
# largest one: a step counter of 4 bytes beside `state/nu/layer_*` would leave only `state`. With any value from 1e-6 to
# 0.1, the causes of the stored programs have the same names.
LEAST_NAMED = 1e-4
# An argument counts as newly donated, or no longer donated, if this is true of at least this share of its bytes. A path
# with * stands for the arrays of all layers, and JAX may find no result for one of them. With any value from 0.01 to 1,
# the stored programs have the same causes: there, donation changes for all bytes or for none.
MOST = 0.5
ArgumentPairs = Mapping[str, ArgumentPair]  # by the path after


def added_and_removed(paired: PairedArguments, ledger: Ledger, memory: str) -> Iterator[ChangeCause]:
    """Yield a cause for the arguments of one side that share the first key of their paths, such as `state`.

    `memory`: the name of this memory. Arguments in another one have copies here, which the cause claims as well.
    """
    for kind, sign, alone, was, now in (
        (ChangeCauseKind.ARGUMENT_ADDED, 1, paired.added, "", ""),
        (ChangeCauseKind.ARGUMENT_REMOVED, -1, paired.removed, "", ""),
        (ChangeCauseKind.MEMORY, 1, paired.moved_in, "", memory),
        (ChangeCauseKind.MEMORY, -1, paired.moved_out, memory, ""),
    ):
        for arguments in _by_root(alone, attrgetter("path")):
            paths = [argument.path for argument in arguments]
            rows = ledger.claim_arguments(paths)
            if kind is ChangeCauseKind.MEMORY:
                copies = {f"{COPIES}/{template(path)}" for path in paths}
                rows += claim(row for row in ledger.open if row.template in copies)
            largest = max(arguments, key=lambda argument: argument.bytes)
            arrays = sum(argument.arrays for argument in arguments)
            size = total(rows) if rows else sign * sum(argument.bytes for argument in arguments)  # small ones have none
            least = LEAST_NAMED * largest.bytes
            name = common_path([argument.path for argument in arguments if argument.bytes >= least])
            yield ChangeCause(kind, (name,), size, was, now, arrays, shape=largest.shape)


def shardings(pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for each change of sharding that changes a device's part of an argument.

    The cause claims the arguments, arrays of their shapes such as gradients, and arrays whose part changed by the same
    factor.
    """
    found = defaultdict[tuple[str, str], list[str]](list)
    for name, (old, new) in pairs.items():
        if (old.sharding, old.copies) != (new.sharding, new.copies) and old.shape != new.shape:
            found[_sharding_text(old), _sharding_text(new)].append(name)
    for (was, now), names in found.items():
        sizes = [(size_of(pairs[name].before.shape), size_of(pairs[name].after.shape)) for name in names]
        changed = {(old, new) for one in sizes for old, new in changed_dimensions(*one) if old}
        parts = [row for factor in {Fraction(new, old) for old, new in changed} for row in ledger.rescaled_by(factor)]
        rows = ledger.claim_arguments(names)
        of_old, of_new = {old for old, _ in sizes}, {new for _, new in sizes}
        rows += claim(  # such as their gradients
            row
            for row in ledger.open
            if row.role in COMPUTED_OR_OUTPUT
            and ((row.is_old and row.size in of_old) or (row.is_new and row.size in of_new))
        )
        rows += claim(parts)
        yield _named(ChangeCauseKind.SHARDING, names, pairs, rows, was, now)


def _is_resharded(old: ArgumentFacts, new: ArgumentFacts, devices: tuple[int, int]) -> bool:
    """Return whether only the sharding changed, and not the whole argument: a device's part then has another shape."""
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
    """Yield a cause for each change from one number type to another, of arguments and of arrays computed from them."""
    names = defaultdict[tuple[str, str], list[str]](list)
    for name, (old, new) in pairs.items():
        if dtype_of(old.shape) != dtype_of(new.shape) and size_of(old.shape) == size_of(new.shape):
            names[dtype_of(old.shape), dtype_of(new.shape)].append(name)
    sizes = _retyped_sizes(ledger)
    for was, now in {**dict.fromkeys(names), **dict.fromkeys(sizes)}:
        own, others = names[was, now], sizes[was, now]
        rows = ledger.claim_arguments(own)
        retyped = [row for row in ledger.open if (row.is_old and row.dtype == was) or (row.is_new and row.dtype == now)]
        on_both_sides = {row.size for row in retyped if row.is_old} & {row.size for row in retyped if row.is_new}
        rows += claim(row for row in retyped if row.size in others | on_both_sides)
        if own:
            yield _named(ChangeCauseKind.DTYPE, own, pairs, rows, was, now)
        elif rows:  # there are none where another cause has claimed the arrays
            arrays = sum(row.arrays_after for row in rows)
            largest = max(rows, key=lambda row: abs(row.bytes))
            yield ChangeCause(ChangeCauseKind.DTYPE, (), total(rows), was, now, arrays, example=largest.path)


def _retyped_sizes(ledger: Ledger) -> dict[tuple[str, str], set[tuple[int, ...]]]:
    """Return, by types before and after, the dimensions of arrays that changed their type and nothing else."""
    sizes = defaultdict[tuple[str, str], set[tuple[int, ...]]](set)
    old = defaultdict[tuple[str, str, tuple[int, ...]], set[str]](set)
    for row in ledger.open:
        if row.is_old:
            old[row.template, row.role, row.size].add(row.dtype)
    for row in ledger.open:
        for was in old.get((row.template, row.role, row.size), ()) if row.is_new else ():
            sizes[was, row.dtype].add(row.size)
    return sizes


def shapes(pairs: ArgumentPairs, ledger: Ledger, devices: tuple[int, int]) -> Iterator[ChangeCause]:
    """Yield a cause for each change of an argument's dimension, such as the batch or the layers of a scan.

    The cause claims all arrays with a dimension that changed by the same factor. `devices`: the number of devices
    before and after, over which an argument may be split.
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
        rows = ledger.claim_arguments(names)
        rows += claim(ledger.rescaled_by(Fraction(now, was))) if was else []
        places = {_changed_dimension(pairs[name]) for name in names}
        cause = _named(ChangeCauseKind.SHAPE, names, pairs, rows, str(was), str(now))
        yield replace(cause, dimension=places.pop() if len(places) == 1 else None)
    for name in others:
        rows = ledger.claim_arguments([name])
        yield _named(ChangeCauseKind.SHAPE, [name], pairs, rows, pairs[name].before.shape, pairs[name].after.shape)


def _changed_dimension(pair: ArgumentPair) -> int:
    """Return the first dimension that differs."""
    sizes = zip(size_of(pair.before.shape), size_of(pair.after.shape), strict=True)
    return next(at for at, (before, after) in enumerate(sizes) if before != after)


def donations(pairs: ArgumentPairs, ledger: Ledger, grown: int) -> Iterator[ChangeCause]:
    """Yield causes for arguments that were donated and no longer are, and for arguments that are donated now.

    `grown`: the change of the peak in bytes.
    """
    found: dict[ChangeCauseKind, list[str]] = {ChangeCauseKind.NOT_DONATED: [], ChangeCauseKind.DONATED: []}
    for name, (old, new) in pairs.items():
        change = new.donated_bytes / max(new.bytes, 1) - old.donated_bytes / max(old.bytes, 1)
        if abs(change) >= MOST:
            found[ChangeCauseKind.DONATED if change > 0 else ChangeCauseKind.NOT_DONATED].append(name)
    groups = [(kind, names) for kind, every in found.items() for names in _by_root(every)]
    claimed = []
    for _, names in groups:
        templates = set(map(template, names))
        claimed.append(claim(row for row in ledger.open if row.template in templates and row.role == "output"))
    for (kind, names), rows in zip(groups, claimed, strict=True):
        # JAX gives donated memory to any result of the same shape, so another result may need memory of its own.
        sizes = {size_of(argument.shape) for name in names for argument in pairs[name]}
        results = [row for row in ledger.open if row.role == "output" and row.size in sizes]
        rows += claim(row for row in results if (row.bytes > 0) is (kind is ChangeCauseKind.NOT_DONATED))
        cause = _named(kind, names, pairs, rows)
        if not cause.bytes:  # each result is below the size that is listed
            size = sum(pairs[name].before.donated_bytes - pairs[name].after.donated_bytes for name in names)
            cause = replace(cause, bytes=size if abs(size) <= abs(grown) else 0)
        yield cause


def _by_root(items: Iterable[T], path: Callable[[T], str] = str) -> list[list[T]]:
    """Group items by the first key of their paths."""
    roots = defaultdict[str, list[T]](list)
    for item in items:
        roots[path(item).partition("/")[0]].append(item)
    return list(roots.values())


def _named(
    kind: ChangeCauseKind,
    names: list[str],
    pairs: ArgumentPairs,
    rows: list[LedgerRow],
    before: str = "",
    after: str = "",
) -> ChangeCause:
    """Return a cause for these arguments, named after the common part of the paths below each root."""
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
