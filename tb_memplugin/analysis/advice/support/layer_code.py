"""The function that computes a layer, the line that runs it, and code that wraps it in jax.checkpoint."""

import re
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.ownership.source_lines import framework_frames
from tb_memplugin.model.arrays import F64, I32, I64, Mask, largest_per, marked
from tb_memplugin.model.tables import Stacks

LIBRARY = re.compile(r"(?:^|/)(flax/linen|flax/nnx|equinox|haiku)/")
# Code for a method of a module. Modules of the other libraries are called where the layers are.
CLASS_CODE = {
    "flax/linen": "{cls} = nn.remat({cls})  # flax.linen as nn; before the layers are made. Unnamed layers' parameters "
    "are then called Checkpoint{cls}_*",
    "flax/nnx": "{cls}.{method} = nnx.remat({cls}.{method})  # from flax import nnx",
    "equinox": "x = eqx.filter_checkpoint(layer)(x)  # equinox as eqx; where each {cls} is called",
    "haiku": "x = hk.remat(layer)(x)  # haiku as hk; where each {cls} is called",
}
OTHER_CLASS = "x = jax.checkpoint(layer)(x)  # where each {cls} is called"


def leaves_below(stacks: Stacks, leaf: I32, frames: list[int]) -> I64:
    """Return the distinct innermost frames among `leaf` that one of `frames` calls."""
    wanted = set(frames)
    found = [one for one in np.unique(leaf).tolist() if not wanted.isdisjoint(stacks.callers(one))]
    return np.array(found, dtype=np.int64)


def called_functions(stacks: Stacks, leaves: I32, frames: list[int]) -> list[int]:
    """Return a user's frame of each function that these lines call; for code in the lines themselves, the line.

    If a lambda does nothing but call one function, that function counts as called.
    """
    framework: Mask = framework_frames(stacks)
    wanted, found, named = set(frames), dict[tuple[int, int], int](), dict[tuple[int, int], int]()
    for leaf in np.unique(leaves[leaves >= 0]).tolist():
        inner = list(stacks.callers(leaf))
        outside = next((i for i, frame in enumerate(inner) if frame in wanted), 0)
        users = [frame for frame in inner[:outside] if not framework[frame]] or [inner[outside]]
        inside = [frame for frame in users if not stacks.function[frame].endswith("<lambda>")]
        for table, frame in ((found, users[-1]), (named, (inside or users)[-1])):
            table.setdefault((int(stacks.function.codes[frame]), int(stacks.file.codes[frame])), frame)
    return list((named if len(named) == len(found) else found).values())


def layer_lines(stacks: Stacks, inside: I32, outside: I32) -> list[int]:
    """Return the outermost frames that call some innermost frames `inside`, but none of `outside`."""
    elsewhere = {frame for leaf in np.unique(outside[outside >= 0]).tolist() for frame in stacks.callers(leaf)}
    return _lines_below(stacks, inside, elsewhere)


def function_of(stacks: Stacks, inside: I32, lines: list[int]) -> int:
    """Return a user's frame of the function that all lines of a layer call; -1 if there is none.

    If functions only call one another, such as a model that only calls its layers, the innermost is returned. If one
    line of a function computes a whole layer, the function is not the layer's own.
    """
    found = -1
    while lines:
        called = called_functions(stacks, inside, lines)
        if len(called) != 1 or called[0] in lines:
            break
        found = called[0]
        inner = _lines_below(stacks, inside, set(lines))
        lines = inner if len(inner) == 1 else []
    return found


def _lines_below(stacks: Stacks, inside: I32, lines: set[int]) -> list[int]:
    """Return the frames that these lines call on the way to the innermost frames `inside`."""
    found = set[int]()
    for leaf in np.unique(inside[inside >= 0]).tolist():
        inner = list(takewhile(lambda frame: frame not in lines, stacks.callers(leaf)))
        found.update(inner[-1:])
    return sorted(found)


def is_of_library(stacks: Stacks, inside: I32, lines: list[int]) -> bool:
    """Return whether these lines call modules of a library, such as flax.linen.Dense, and no function of the user."""
    called = called_functions(stacks, inside, lines) if lines else []
    return bool(called) and set(called) <= set(lines) and bool(library_of(stacks, inside, lines))


def has_other_lines(stacks: Stacks, frame: int) -> bool:
    """Return whether other lines of a frame's function have frames in the same call."""
    same: Mask = (stacks.parent == stacks.parent[frame]) & (stacks.function.codes == stacks.function.codes[frame])
    return bool((same & (stacks.line != stacks.line[frame])).any())


def layer_code(stacks: Stacks, frame: int, leaves: I32, place: str) -> str:
    """Return code that makes the function of a frame rematerialize; `leaves` are the innermost frames inside it."""
    *outer, name = stacks.function[frame].split(".")
    if outer and not outer[-1].startswith("<"):
        text = CLASS_CODE.get(library_of(stacks, leaves), OTHER_CLASS)
        return text.format(cls=outer[-1], method=name)
    name = "layer" if name.startswith("<") else name
    return f"{name} = jax.checkpoint({name})  # {place}"


def library_of(stacks: Stacks, leaves: I32, lines: list[int] | None = None) -> str:
    """Return the library to whose modules most of the frames belong, below the lines if any; empty for none."""
    count: dict[str, int] = {}
    for leaf in np.unique(leaves[leaves >= 0]).tolist():
        for frame in takewhile(lambda frame: frame not in (lines or ()), stacks.callers(leaf)):
            if found := LIBRARY.search(stacks.file[frame].replace("\\", "/")):
                count[found[1]] = count.get(found[1], 0) + 1
    return max(count, key=lambda library: count[library], default="")


# Of the 60 stored programs with a backward pass, 49 have layers that repeat; the numbers of answers below count these.
# A line runs from the first to the third quartile of its operations, because compilers move some operations to the
# start or the end. With deciles, 4 answers change; with the first and the last operation, 6.
QUARTILES = (0.25, 0.75)
# A line of a loop is a layer of its own if it keeps this share of the bytes that all layers of the loop keep. From 0.01
# to 0.1, all answers are the same; from 0.2 on, 3 programs lose a smaller layer.
MIN_SHARE = 0.05
# At least so many lines of a function must repeat before most of its lines count as repeating; if fewer do, the others
# may be an embedding or a head. With 2, 5 answers change; with 1, 14; with 4 or 5, none.
MIN_LINES = 3
# A line is as good as the best if it keeps this share of the best one's bytes: a fusion may have the call stack of a
# line of another layer. With 0.998, 4 answers change; with 0.95, 11. With 1.0, two programs get the logits in place of
# their blocks, and one gets nothing.
ALMOST_ALL = 0.999
# An operation with less than half of the median elements of repeating operations is not evidence: values computed from
# weights alone are small, and may be computed at any time. An eighth or the whole median gives the same answers;
# without a bound, 4 change.
MEDIAN_SHARE = 2


class CallSite(NamedTuple):
    """Lines of one function in one call, each of which runs as often as the others."""

    frames: list[int]
    depth: int
    kept: float  # bytes that its operations keep for the backward pass


class Operations(NamedTuple):
    """The named operations of a forward pass, in order."""

    leaf: I32  # the innermost frame
    repeats: I64  # how many operations have the same name and stack
    kept: F64  # bytes kept for the backward pass
    reads_weight: Mask
    is_product: Mask
    elements: I64  # of its largest result


class _Line(NamedTuple):
    """A line of a function: when most of its operations run, and whether any repeats or reads a weight."""

    begin: float
    end: float
    repeats: bool
    reads_weight: bool
    multiplies: bool  # by a weight
    first: int
    last: int


def call_site(stacks: Stacks, operations: Operations, turns: int, often_later: I32) -> CallSite | None:
    """Return the innermost line that runs `turns` times and below which most bytes are kept, or lines of one loop.

    `often_later` are innermost frames of operations that occur often in the backward pass.
    """
    leaves, of_leaf = np.unique(operations.leaf, return_inverse=True)
    once = _runs_once(operations, of_leaf, turns) & ~np.isin(leaves, often_later)
    size = np.bincount(of_leaf, operations.kept, len(leaves))
    below: dict[int, float] = {}
    depth: dict[int, int] = {}
    runs_once, in_turns = _calls(stacks, operations, turns)
    for frame, is_single, bytes_kept in zip(leaves.tolist(), once.tolist(), size.tolist(), strict=True):
        chain = list(stacks.callers(frame))
        for steps, caller in enumerate(chain):
            depth[caller] = len(chain) - steps
            below[caller] = below.get(caller, 0.0) + bytes_kept
        # If most lines of a function run in turns, another one may be fused differently in the last turn only.
        runs_once.update(chain if is_single and in_turns.isdisjoint(chain) else ())
    lines = [CallSite([frame], depth[frame], kept) for frame, kept in below.items() if frame not in runs_once]
    loops: dict[tuple[int, int, int], CallSite] = {}
    for (frame,), steps, bytes_kept in lines:
        where = (int(stacks.parent[frame]), int(stacks.function.codes[frame]), int(stacks.file.codes[frame]))
        before = loops.get(where, CallSite([], steps, 0.0))
        loops[where] = CallSite([*before.frames, frame], steps, before.kept + bytes_kept)
    largest = max((site.kept for site in loops.values()), default=0.0)
    best = [site for site in lines if site.kept >= ALMOST_ALL * largest] or list(loops.values())
    return max((s for s in best if s.kept >= ALMOST_ALL * largest > 0), key=lambda s: s.depth, default=None)


def one_after_another(stacks: Stacks, operations: Operations, site: CallSite) -> list[CallSite]:
    """Return the lines of a site that call layers one after another, in order; the site itself if lines take turns."""
    found: list[tuple[float, float, CallSite]] = []
    for frame in site.frames if len(site.frames) > 1 else ():
        leaves = leaves_below(stacks, operations.leaf, [frame])
        at = np.flatnonzero(np.isin(operations.leaf, leaves) & (operations.kept > 0))
        kept = float(operations.kept[at].sum())
        called = called_functions(stacks, leaves.astype(np.int32), [frame])
        if kept >= MIN_SHARE * site.kept and len(called) == 1 and called[0] != frame:
            begin, end = np.quantile(at, QUARTILES)
            found.append((float(begin), float(end), CallSite([frame], site.depth, kept)))
    found.sort(key=lambda line: line[0])
    apart = all(line[1] < other[0] for line, other in pairwise(found))
    most = 2 * sum(line[2].kept for line in found) > site.kept
    return [line[2] for line in found] if apart and most else [site]


def _calls(stacks: Stacks, operations: Operations, turns: int) -> tuple[set[int], set[int]]:
    """Return the lines that call a function once, and those that call one most of whose lines repeat.

    The lines of a function that is called once do not run in turns: either two of them repeat one after the other, as
    two loops do, or most do not repeat and one of these reads a weight, as in a model with an embedding, layers and a
    head, or one multiplies by a weight after all that repeat, as a head does.
    """
    large = MEDIAN_SHARE * operations.elements >= np.median(operations.elements[operations.repeats == turns])
    large |= operations.reads_weight & operations.is_product  # the result of a head may be small
    counts = np.flatnonzero(large & (operations.reads_weight | (operations.kept > 0)))
    order = counts[np.argsort(operations.leaf[counts], kind="stable")]
    leaves, begin = np.unique(operations.leaf[order], return_index=True)
    lines: dict[int, dict[tuple[int, int], list[I64]]] = {}  # by the frame that calls them
    for leaf, at in zip(leaves.tolist(), np.split(order, begin[1:]), strict=True):
        for frame in stacks.callers(leaf):
            line = int(stacks.function.codes[frame]), int(stacks.line[frame])
            lines.setdefault(int(stacks.parent[frame]), {}).setdefault(line, []).append(at)
    once, in_turns = set[int](), set[int]()
    for frame, called in lines.items():
        found = [_line(operations, at, turns) for at in called.values()]
        if frame >= 0 and len(called) > 1 and _run_in_sequence(found):
            once.update(stacks.callers(frame))
        elif (repeated := sum(line.repeats for line in found)) >= MIN_LINES and 2 * repeated > len(found):
            in_turns.add(frame)
    return once, in_turns


def _line(operations: Operations, parts: list[I64], turns: int) -> _Line:
    at = np.concatenate(parts)
    begin, end = np.quantile(at, QUARTILES)
    repeats = bool(operations.repeats[at].max() >= max(turns - 1, 2))
    reads = operations.reads_weight[at]
    multiplies = bool((reads & operations.is_product[at]).any())
    return _Line(float(begin), float(end), repeats, bool(reads.any()), multiplies, int(at.min()), int(at.max()))


def _run_in_sequence(lines: list[_Line]) -> bool:
    repeated = sorted(line for line in lines if line.repeats)
    once = [line for line in lines if not line.repeats and line.reads_weight]
    several = [line for line in repeated if line.begin < line.end]
    if any(line.end < other.begin for line, other in pairwise(several)):
        return True
    if not repeated or not once:
        return False
    end = max(line.last for line in repeated)
    if any(line.multiplies and line.first > end for line in once):
        return True
    before = min(once).end < repeated[0].begin  # an embedding; a later line may be a part of the last layer
    return 2 * len(repeated) < len(lines) + before


def _runs_once(operations: Operations, of_leaf: I64, turns: int) -> Mask:
    """Mark the innermost frames with few operations, which come after all operations that repeat or read a weight.

    Elsewhere, frames with few operations belong to the first or the last turn, which the compiler fuses differently, or
    to constants such as masks, which it computes once. A single operation at the end with a large result is not marked
    either: it may be the addition to the residual stream, which is fused with the next layer in the other turns.
    """
    often = largest_per(of_leaf, operations.repeats, int(of_leaf.max()) + 1)
    all_turns = np.flatnonzero(operations.repeats == turns)
    before, after = slice(None, all_turns[0]), slice(all_turns[-1] + 1, None)
    outside = marked(len(often), of_leaf[before][operations.reads_weight[before]])
    alone = np.bincount(of_leaf, minlength=len(often)) == 1
    fused = alone[of_leaf[after]]
    fused &= operations.elements[after] >= np.median(operations.elements[all_turns])
    outside[of_leaf[after][~fused]] = True
    outside[of_leaf[all_turns[0] : all_turns[-1] + 1]] = False
    return (often < max(turns - 1, 2)) & outside
