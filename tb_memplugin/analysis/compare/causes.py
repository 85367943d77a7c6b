"""The causes of the change between two recordings of one program, from the facts of each."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from tb_memplugin.analysis.compare.argument_causes import (
    ArgumentPairs,
    PairedArguments,
    added_and_removed,
    donations,
    dtypes,
    paired_arguments,
    shapes,
    shardings,
)
from tb_memplugin.analysis.compare.facts import facts
from tb_memplugin.analysis.compare.ledger import (
    COMPUTED,
    COMPUTED_OR_OUTPUT,
    Ledger,
    LedgerRow,
    cause_of,
    claim,
    rescaled,
    total,
)
from tb_memplugin.analysis.compare.stable_paths import dtype_of, size_of, template
from tb_memplugin.analysis.ownership.by_model import NO_PATH
from tb_memplugin.model.arrays import dimensions
from tb_memplugin.model.changes import ArrayFacts, ChangeCause, ChangeCauseKind, Explanation, MemoryFacts
from tb_memplugin.model.recording import Recording

ACTIVATION = "activation"
ArrayContent = tuple[str, tuple[int, ...]]  # type and dimensions of an array, whatever their order


def layers(pairs: ArgumentPairs, before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for each family of layers whose number changed, such as 3 to 4 `layer_*`."""
    counts = defaultdict[str, Counter[tuple[int, int]]](Counter)
    for old, new in pairs.values():
        if old.layers != new.layers:
            counts[family(new.path) or family(old.path)][old.layers, new.layers] += abs(new.bytes - old.bytes)
    saved_more = _saved_more(before, after)
    for name, found in counts.items():
        (was, now), _ = found.most_common(1)[0]
        contents = {content for content, more in saved_more.items() if _is_multiple(more, now - was)}
        rows = claim(row for row in ledger.open if _is_of_layers(row, name, now - was))
        activations = [row for row in ledger.open if row.role == ACTIVATION and _content(row.shape) in contents]
        rows += claim(row for row in activations if (row.arrays > 0) is (now > was))
        yield ChangeCause(ChangeCauseKind.LAYERS, (name,), total(rows), str(was), str(now))


def _is_of_layers(row: LedgerRow, name: str, layers: int) -> bool:
    """Return whether a row gained one or more arrays for each additional layer, or lost them for each removed layer."""
    if not _is_multiple(row.arrays, layers):
        return False
    if template(name) in row.template:
        return True
    return row.role in COMPUTED_OR_OUTPUT and not row.is_new and not row.is_old  # its path may lack the layer's name


def _is_multiple(arrays: int, layers: int) -> bool:
    each, rest = divmod(arrays, layers)
    return not rest and each >= 1


def family(path: str) -> str:
    """Return the first layer of a path, `layer_*`; an index, with the name before it. Empty without a layer."""
    keys = path.split("/")
    at = next((i for i, key in enumerate(keys) if "*" in key), -1)
    if at < 0:
        return ""
    return "/".join(keys[at - 1 : at + 1]) if keys[at].startswith("[") and at else keys[at]


def saved(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for each layer, function or scan that saves more or fewer activations for the backward pass.

    Activations of one type and size count together, because compilers name them after any operation of a fusion.
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
    """Claim the rows of activations with some types and sizes, if they changed in the direction of `number`.

    More saved activations need not raise the peak, as it may move to a position where others are live. Rows that may be
    activations are tried first, then rows of any computed role that only one side has: at the peak, the memory in which
    a scan saves activations may still contain its initial values.
    """
    computed = [row for row in ledger.open if row.role in COMPUTED and _content(row.shape) in contents]
    # A row that lacks a model path may be an activation: only the path could show it.
    may_be_saved = [row for row in computed if row.role == ACTIVATION or row.template.startswith(NO_PATH)]
    of_one_side = [row for row in computed if row.is_new or row.is_old]
    for rows in (may_be_saved, of_one_side):
        if total(rows) * number > 0:
            return claim(rows)
    return []


def _saved_more(before: MemoryFacts, after: MemoryFacts) -> Counter[ArrayContent]:
    """Return the growth of the number of saved activations, for each type and size."""
    more = Counter[ArrayContent]()
    for sign, side in ((1, after), (-1, before)):
        for array in side.saved:
            more[_content(array.shape)] += sign * array.arrays
    return more


def _places(facts: MemoryFacts, content: ArrayContent) -> Counter[str]:
    """Return the number of activations of a type and size that each place saves."""
    found = Counter[str]()
    for array in facts.saved:
        if _content(array.shape) == content:
            found[place_of(array)] += array.arrays
    return found


def place_of(array: ArrayFacts) -> str:
    """Return the layer of an array, else its function, else its outermost scope, else an empty text."""
    scope = array.path.partition("/")[0] if "/" in array.path and not array.path.startswith(NO_PATH) else ""
    return family(array.path) or array.function or scope


def outputs(before: MemoryFacts, after: MemoryFacts, pairs: ArgumentPairs, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for results that are new or gone, where results take more or less memory of their own.

    Results of donated arguments are causes of donation, and results of arguments that changed have their causes.
    """
    if before.output_bytes is None or after.output_bytes is None:
        return
    donated = sum(old.donated_bytes - new.donated_bytes for old, new in pairs.values())
    grown = after.output_bytes - before.output_bytes - donated
    if abs(grown) <= max(before.floor_bytes, after.floor_bytes):
        return
    arguments = {template(argument.path) for pair in pairs.values() for argument in pair}
    kind = ChangeCauseKind.OUTPUT_ADDED if grown > 0 else ChangeCauseKind.OUTPUT_REMOVED
    results = [row for row in ledger.open if row.role == "output" and row.template not in arguments]
    if rows := claim(row for row in results if row.bytes * grown > 0):
        yield cause_of(kind, rows)


MIN_LENGTH = 128  # a choice: smaller scores are no cause of much memory, and equal dimensions are chance


def attention(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause where attention's scores are stored at once now, or no longer: both their dimensions are a length.

    A length is a dimension of an input, before and after. Scores in chunks have a part of one of these dimensions.
    """
    lengths = set.intersection(
        *(
            {size for argument in side.arguments if argument.role == "input" for size in size_of(argument.shape)}
            for side in (before, after)
        )
    )
    for more, other in ((True, before), (False, after)):
        # Scores of other programs are inside of fusions, or are stored while other arrays are at the peak.
        stored = [array.shape for array in (*other.arrays, *other.saved)]
        had = {size for shape in (*stored, *(fused.shape for fused in other.fused)) for size in _twice(shape)}
        for length in sorted((size for size in lengths - had if size >= MIN_LENGTH), reverse=True):
            yield from _scores(ledger, length, more)


def _scores(ledger: Ledger, length: int, more: bool) -> Iterator[ChangeCause]:
    computed = [row for row in ledger.open if row.role in (ACTIVATION, "temporary")]
    new, old = [row for row in computed if row.is_new], [row for row in computed if row.is_old]
    if stored := claim(row for row in (new if more else old) if length in _twice(row.shape)):
        whole = {row.size for row in stored}
        chunks = claim(row for row in (old if more else new) if _is_chunk(row, length, whole))
        was, now = ("", str(length)) if more else (str(length), "")
        cause = cause_of(ChangeCauseKind.ATTENTION, [*stored, *chunks], (), was, now)
        yield replace(cause, arrays=sum(abs(row.arrays) for row in stored))


def _twice(shape: str) -> set[int]:
    """Return the dimensions that an array of three or more dimensions has twice."""
    sizes = Counter(size_of(shape))
    return {size for size, count in sizes.items() if count == 2} if sizes.total() > 2 else set()


def _is_chunk(row: LedgerRow, length: int, whole: Collection[tuple[int, ...]]) -> bool:
    """Return whether an array has the dimensions of scores, except for a part of one length."""
    sizes = Counter(row.size)
    others = ((Counter(scores) - sizes, sizes - Counter(scores)) for scores in whole)
    return any(lost == Counter([length]) and came.total() == 1 and max(came) < length for lost, came in others)


def _content(shape: str) -> ArrayContent:
    return dtype_of(shape), tuple(sorted(dimensions(shape)))


def fusions(before: MemoryFacts, after: MemoryFacts, ledger: Ledger) -> Iterator[ChangeCause]:
    """Yield a cause for each fusion whose operations are now stored in memory, and for each whose are no longer."""
    for kind, side in ((ChangeCauseKind.FUSION_SPLIT, before), (ChangeCauseKind.FUSED, after)):
        fusion_of = {(fused.path, fused.shape): fused.fusion for fused in side.fused}
        split = kind is ChangeCauseKind.FUSION_SPLIT
        changed = [row for row in ledger.open if row.bytes and (row.is_new if split else row.is_old)]
        groups = defaultdict[str, list[LedgerRow]](list)
        for row in claim(row for row in changed if (row.template, row.shape) in fusion_of):
            groups[fusion_of[row.template, row.shape]].append(row)
        for name, rows in groups.items():
            yield cause_of(kind, rows, (name,))


# Causes below this share of the change of the peak are left out. The 32 changes of stored programs and of the demo have
# the same causes with any value from 0.01 to 0.3; with 0.005, two of them have further ones.
MIN_SHARE = 0.02
MAX_CAUSES = 12
MAX_DIFFERENCES = 8
EVIDENT = {ChangeCauseKind.DEVICES, ChangeCauseKind.MICROBATCHES, ChangeCauseKind.LAYERS}
# Causes that are stated even if they add no bytes: the peak may be at a position that they do not affect.
WITHOUT_BYTES = {*EVIDENT, ChangeCauseKind.NOT_DONATED, ChangeCauseKind.DONATED}
OF_ARGUMENTS = {
    ChangeCauseKind.ARGUMENT_ADDED,
    ChangeCauseKind.ARGUMENT_REMOVED,
    ChangeCauseKind.MEMORY,
    ChangeCauseKind.SHARDING,
    ChangeCauseKind.DTYPE,
    ChangeCauseKind.SHAPE,
}
ROOTS = {*OF_ARGUMENTS, *EVIDENT}  # what a program computes follows from these
# A cause with this share of all explained bytes counts as the only one. Of 104 changes that were compiled for TPU and
# GPU and not looked at before, 91 have the bytes of the change within 10 % with 0.9 or 0.95, and 90 with 0.7 or 0.8.
ONLY = 0.9
# A cause that is none of ROOTS is the whole change only if that is between a third and three times as large. With 4,
# 91 of the 104 are right as well, and with 2, 89.
MOVED = 3


def explain_change(before: MemoryFacts, after: MemoryFacts) -> Explanation:
    """Return the causes of a change of memory, and the differences that no cause claims.

    Each kind of cause claims its arrays from those that earlier kinds left, so that causes and `unexplained_bytes` add
    up to the change of the peak. Equal facts have neither causes nor differences.
    """
    paired = paired_arguments(before, after)
    ledger = Ledger(before, after, {old.path: new.path for old, new in paired.pairs.values()})
    found = list(_causes(before, after, paired, ledger)) if before.kind.has_program else []
    grown = after.peak_bytes - before.peak_bytes
    least = max(int(MIN_SHARE * abs(grown)), before.floor_bytes, after.floor_bytes)
    if not found and before.kind.has_program:  # after other changes, fusions differ as a consequence
        found = list(fusions(before, after, ledger))
    found = _with_moved(found, ledger, grown, least)
    large = [cause for cause in found if abs(cause.bytes) > least or cause.kind in WITHOUT_BYTES]
    # After any change of the arguments, a compiler may choose another plan.
    found = large or [cause for cause in found if grown and cause.kind in OF_ARGUMENTS]
    unexplained = [difference for difference in ledger.differences() if abs(difference.bytes) > least]
    causes = sorted(found, key=lambda cause: -cause.bytes)[:MAX_CAUSES]
    return Explanation(tuple(causes), tuple(unexplained[:MAX_DIFFERENCES]), grown - total(found))


def _causes(before: MemoryFacts, after: MemoryFacts, paired: PairedArguments, ledger: Ledger) -> Iterator[ChangeCause]:
    pairs, devices = paired.pairs, (before.devices, after.devices)
    if before.devices != after.devices:
        yield ChangeCause(ChangeCauseKind.DEVICES, (), 0, str(before.devices), str(after.devices))
    yield from added_and_removed(paired, ledger, after.memory)
    resharded = list(shardings(pairs, ledger))
    yield from dtypes(pairs, ledger)
    yield from shapes(pairs, ledger, devices)
    yield from donations(pairs, ledger, after.peak_bytes - before.peak_bytes)
    yield from attention(before, after, ledger)
    scaled = list(rescaled(ledger))
    if resharded:  # where arguments are split otherwise, so is what the program computes
        resharded[0] = replace(resharded[0], bytes=resharded[0].bytes + total(scaled))
    elif None not in (was := before.microbatches, now := after.microbatches) and was != now:
        arrays = sum(cause.arrays for cause in scaled)
        scaled = [ChangeCause(ChangeCauseKind.MICROBATCHES, (), total(scaled), str(was), str(now), arrays)]
    yield from resharded or scaled
    yield from layers(pairs, before, after, ledger)
    yield from saved(before, after, ledger)
    yield from outputs(before, after, pairs, ledger)


def _with_moved(causes: list[ChangeCause], ledger: Ledger, grown: int, least: int) -> list[ChangeCause]:
    """Add to the only cause of a change what else is computed at the peak, which is at another moment after it.

    Without donation, for instance, the peak may move from the backward pass, where activations are live, to the update.
    `grown`: the change of the peak; smaller changes of it than `least` are left.
    """
    largest = max(causes, key=lambda cause: abs(cause.bytes), default=None)
    if largest is None or abs(largest.bytes) < ONLY * sum(abs(cause.bytes) for cause in causes):
        return causes
    if any(not one.bytes and one.kind in ROOTS - {largest.kind} for one in causes):
        return causes  # what this other cause changed has other paths or shapes
    of_arguments = total(row for row in ledger.open if not ledger.is_computed(row))
    moved = grown - of_arguments - total(causes)
    direct, in_all = abs(largest.bytes), abs(largest.bytes + moved)
    if abs(moved) <= least or (largest.kind not in ROOTS and not direct / MOVED <= in_all <= direct * MOVED):
        return causes
    claim(row for row in ledger.open if ledger.is_computed(row))
    whole = replace(largest, bytes=largest.bytes + moved, moved_bytes=moved)
    return [whole if one is largest else one for one in causes]


def causes_between(before: Recording, after: Recording) -> list[ChangeCause]:
    """Return the causes of the change between the peaks of two programs, the largest first; none for other kinds."""
    if not (before.kind.has_program and after.kind.has_program):
        return []
    return sorted(explain_change(facts(before), facts(after)).causes, key=lambda cause: -abs(cause.bytes))
