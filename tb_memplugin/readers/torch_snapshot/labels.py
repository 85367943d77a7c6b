"""Roles, labels, operators, pools and streams of a snapshot's allocations, their call stacks, and named intervals."""

import re

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, take_or_missing
from tb_memplugin.model.kinds import Role, SpanKind
from tb_memplugin.model.tables import NamedSpans, Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.graph.stack_tree import Chains
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.torch_profiler.exported_timeline import CATEGORIES
from tb_memplugin.readers.torch_profiler.trace import annotation_kind
from tb_memplugin.readers.torch_snapshot.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.pickle_values import PickleNodes, PickleValues
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments, pool_name
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction, read_times
from tb_memplugin.sizes import bytes_text

OPERATOR = re.compile(r"at::_ops::(\w{1,200})::")
BACKWARD = re.compile(r"\b(\w{1,200}Backward\d{0,9})\b")


def operators(stacks: Stacks, leaf: I32) -> Text:
    """Return each row's outermost operator, `einsum` or `BmmBackward0: bmm`; empty where the stack has none."""
    operator = _outermost(stacks, OPERATOR)
    backward = _outermost(stacks, BACKWARD)
    operator, backward = np.r_[operator, -1][leaf], np.r_[backward, -1][leaf]
    codes, first = group_rows([operator, backward])
    forwards, backs = _names(stacks, OPERATOR, operator[first]), _names(stacks, BACKWARD, backward[first])
    texts = [": ".join(filter(None, names)) for names in zip(backs, forwards, strict=True)]
    return Text.of(texts).take(codes)


def _names(stacks: Stacks, pattern: re.Pattern[str], nodes: I64) -> list[str]:
    """Return the name that the pattern finds in each frame's function; empty for -1. Each function is searched once."""
    codes = take_or_missing(stacks.function.codes, nodes).tolist()
    found = {code: pattern.search(stacks.function.strings[code]) for code in set(codes) if code >= 0}
    names = {code: match[1] if match else "" for code, match in found.items()}
    return [names.get(code, "") for code in codes]


def _outermost(stacks: Stacks, pattern: re.Pattern[str]) -> I32:
    """Return, per frame, the outermost frame of its stack whose function matches; -1 for none."""
    count = len(stacks.parent)
    found = np.where(stacks.function.where(pattern.search), np.arange(count), count)
    above = np.where(stacks.parent >= 0, stacks.parent, count)
    found, above = np.r_[found, count], np.r_[above, count]  # sentinel row: the parent of roots
    while (above < count).any():  # pointer jumping: the distance doubles each round
        outer = found[above]
        found = np.where(outer < count, outer, found)
        above = above[above]
    return np.where(found[:count] < count, found[:count], -1).astype(np.int32)


# Traces that PyTorch makes of its profiler's events contain the profiler's categories, with "_" for a space.
ROLES = {category.name.replace(" ", "_"): category.role for category in CATEGORIES}
NO_CONTEXT = ("", "N/A")  # outside of compilation


def roles(trace: Trace, lives: BlockLifetimes) -> U8:
    """Return the role of each allocation, from the profiler's category; UNKNOWN where there is none."""
    of_event = trace.category.map(lambda name: ROLES.get(name, Role.UNKNOWN), Role.UNKNOWN, np.uint8)
    roles: U8 = np.r_[of_event, np.uint8(0)][lives.alloc_event].astype(np.uint8)
    return roles


def labels(trace: Trace, lives: BlockLifetimes, blocks: Blocks, budget: ReadBudget) -> Text:
    """Return each allocation's labels: the user's name, the compile context, and the allocator's own note.

    The user's names come from torch.cuda.memory._annotate_tensor, the last of several, and from _set_memory_metadata.
    """
    strings, (user, context, internal, of_block) = _intern_together(
        trace.user_metadata, trace.compile_context, trace.internal_metadata, blocks.user_metadata
    )
    blank = np.array([*(strings[i] in NO_CONTEXT for i in range(len(strings))), True])
    old = lives.alloc_event < 0
    found = (
        np.r_[user, -1][_last_annotation(trace, lives)],
        np.where(old, np.r_[of_block, -1][lives.block], np.r_[user, -1][lives.alloc_event]),
        np.r_[context, -1][lives.alloc_event],
        np.r_[internal, -1][lives.alloc_event],
    )
    columns = np.stack([np.where(blank[column], -1, column) for column in found])
    codes, first = group_rows(columns)
    distinct = columns[:, first]
    budget.charge(4 * int(np.r_[np.diff(strings.offsets), 0][distinct].sum()))  # texts, and columns of them
    texts = [", ".join(dict.fromkeys(strings[i] for i in parts if i >= 0)) for parts in distinct.T.tolist()]
    return Text.of(texts).take(codes)


def _last_annotation(trace: Trace, lives: BlockLifetimes) -> I64:
    """Return, per allocation, the last annotation event at its address during its lifetime; -1 for none."""
    annotations = np.flatnonzero((trace.action == TraceAction.ANNOTATE) & trace.known)
    found = np.full(len(lives.alloc_event), -1)
    if not len(annotations) or not len(found):
        return found
    # One number that sorts by address, then by time.
    _, code = np.unique(np.r_[lives.address, trace.address[annotations]], return_inverse=True)
    of_allocation, of_mark = code[: len(found)], code[len(found) :]
    key = of_allocation * (len(trace) + 1) + lives.alloc_event + 1
    order = np.argsort(key)
    at = np.searchsorted(key[order], of_mark * (len(trace) + 1) + annotations + 1, side="right") - 1
    row = order[np.maximum(at, 0)]
    matches = (
        (at >= 0)
        & (of_allocation[row] == of_mark)
        & ((lives.free_event[row] < 0) | (annotations < lives.free_event[row]))
    )
    np.maximum.at(found, row[matches], annotations[matches])
    return found


def _intern_together(*texts: Text) -> tuple[Strings, list[I64]]:
    """Return one table of distinct strings for several columns, and each column's codes in it."""
    merged = Text.of([text.strings[i] for text in texts for i in range(len(text.strings))])
    firsts = np.cumsum([0, *(len(text.strings) for text in texts)])
    codes = np.r_[merged.codes, np.int32(-1)].astype(np.int64)
    return merged.strings, [
        codes[np.where(text.codes >= 0, text.codes + first, -1)] for text, first in zip(texts, firsts[:-1], strict=True)
    ]


def pools_and_streams(trace: Trace, segments: Segments, blocks: Blocks, lives: BlockLifetimes) -> Text:
    """Return the pool and stream of each allocation; empty where both are the default."""
    stream = np.r_[blocks.stream, 0][lives.block]
    stream = np.where(lives.alloc_event >= 0, np.r_[trace.stream, 0][lives.alloc_event], stream)
    pool = np.r_[blocks.pool, -1][lives.block]
    pool = np.where(pool < 0, np.r_[trace.pool, -1][lives.alloc_event], pool)
    pool = np.where(pool < 0, _pool_of_segment(segments, lives.address), pool)
    code, first = group_rows([pool, stream])
    names = [
        ", ".join(filter(None, (pool_name(of_pool), f"stream {of_stream:#x}" if of_stream else "")))
        for of_pool, of_stream in zip(pool[first].tolist(), stream[first].astype(np.uint64).tolist(), strict=True)
    ]
    return Text.of(names).take(code)


def _pool_of_segment(segments: Segments, address: I64) -> I64:
    """Return the pool of the final segment at each address; -1 where there is none."""
    if not len(segments.address):
        return np.full(len(address), -1)
    base, wanted = segments.address.view(np.uint64), address.view(np.uint64)
    order = np.argsort(base, kind="stable")
    at = order[np.maximum(np.searchsorted(base[order], wanted, side="right") - 1, 0)]
    inside = (wanted >= base[at]) & (wanted - base[at] < segments.size[at].astype(np.uint64))
    return np.where(inside, segments.pool[at], -1)


def read_spans(values: PickleValues, annotations: PickleNodes, device: int, trace: Trace) -> NamedSpans | None:
    """Read the spans on the trace's clock, which begins at its first event; None where the trace has no times.

    A start without its end lasts until the trace ends; an end without its start begins with the trace.
    """
    has_time = trace.time_us >= 0
    if not has_time.any():
        return None
    first, last = int(trace.time_us[has_time][0]), int(trace.time_us.max())
    spans = _annotation_spans(values, annotations, device, first, last)
    for event in np.flatnonzero(trace.action == TraceAction.OOM).tolist():
        free, time = int(trace.device_free[event]), int(trace.time_us[event])
        left = f", {bytes_text(free)} free" if free >= 0 else ""
        name = f"out of memory: {bytes_text(max(int(trace.size[event]), 0))} requested{left}"
        spans.append((name, SpanKind.OUT_OF_MEMORY, time, time + 1))
    times = np.array([span[2:] for span in spans], dtype=np.int64).reshape(-1, 2)
    order = np.argsort(times[:, 0], kind="stable")
    start_ns, end_ns = ((times[order] - first) * 1000).T.copy()
    kinds = np.array([span[1] for span in spans], dtype=np.uint8)
    return NamedSpans(Text.of([span[0] for span in spans]).take(order), kinds[order], start_ns, end_ns)


def _annotation_spans(
    values: PickleValues, annotations: PickleNodes, device: int, first: int, last: int
) -> list[tuple[str, SpanKind, int, int]]:
    """Return the name, kind, start and end of each span.

    Pair starts and ends: an end closes the latest open start of its name. A plain loop, as annotations are few."""
    on_device = annotations[values.integers(values.column(annotations, "device"), device) == device]
    values.charge_rows(len(on_device))
    name, stage = values.texts(values.column(on_device, "name")), values.texts(values.column(on_device, "stage"))
    time, code, begins = read_times(values, on_device).tolist(), name.codes.tolist(), stage.isin(["START"]).tolist()
    open_starts: dict[int, list[int]] = {}
    found: list[tuple[int, int, int]] = []
    for row in np.argsort(np.array(time), kind="stable").tolist():
        if begins[row]:
            open_starts.setdefault(code[row], []).append(time[row])
        else:
            starts = open_starts.get(code[row])
            found.append((code[row], starts.pop() if starts else first, time[row]))
    found += [(label, start, last) for label, starts in open_starts.items() for start in starts]
    labels = [*name.strings, ""]  # one object for each, however many spans have it; -1 takes the last
    kinds = [annotation_kind(label) for label in labels]
    return [(labels[label], kinds[label], start, end) for label, start, end in found]


# A frame in one string, as the profiler writes it: `train.py(7): step`.
PROFILED = re.compile(r"(.+\.pyx?|<.+>)\((\d{1,9})\): (.+)", re.DOTALL)
PYTHON = re.compile(r".*\.pyx?|<.*>", re.DOTALL)  # a source file, or the name of code without one, "<string>"


def read_stacks(values: PickleValues, *columns: PickleNodes) -> tuple[Stacks, list[I32]]:
    """Read the tree of all stacks from columns of frame lists, innermost first. Also return the leaves per column.

    A leaf is -1 where a row has no stack.
    """
    found = [values.stacks(column) for column in columns]
    nodes, frame = np.unique(np.concatenate([frame_nodes for _, _, frame_nodes in found]), return_inverse=True)
    chains = Chains(np.arange(len(nodes) + 1), np.arange(len(nodes), dtype=np.int32))
    leaves: list[I32] = []
    used = 0
    for rows, lengths, frame_nodes in found:
        leaf = chains.add(lengths, frame[used : used + len(frame_nodes)].astype(np.int32))
        used += len(frame_nodes)
        leaves.append(np.r_[leaf, np.int32(-1)][rows].astype(np.int32))
    parent, label = chains.tree()
    return _tree(values, parent, nodes[label] if len(nodes) else nodes), leaves


def _tree(values: PickleValues, parent: I32, frames: PickleNodes) -> Stacks:
    function, file = values.texts(values.column(frames, "name")), values.texts(values.column(frames, "filename"))
    line = values.integers(values.column(frames, "line"), 0).clip(0, 2**31 - 1).astype(np.int32)
    function, file, line = _split_profiler_frames(function, file, line)
    # The file of a C++ frame is an object file or missing. It is no source, so it is dropped.
    is_source = file.where(PYTHON.fullmatch)
    return Stacks(
        parent=parent,
        function=function,
        file=Text(np.where(is_source, file.codes, -1).astype(np.int32), file.strings),
        line=line,
    )


def _split_profiler_frames(function: Text, file: Text, line: I32) -> tuple[Text, Text, I32]:
    """Split frames such as `train.py(7): step`, which PyTorch writes when it converts its profiler's events."""
    strings = function.strings
    parts = [PROFILED.fullmatch(strings[i]) for i in range(len(strings))]
    if not any(parts):
        return function, file, line
    names = Text.of([part[3] if part else strings[i] for i, part in enumerate(parts)])
    files = Text.of([part[1] if part else "" for part in parts])
    numbers = np.array([*(int(part[2]) if part else -1 for part in parts), -1])[function.codes]
    of_file = np.r_[files.codes, np.int32(-1)][function.codes]
    split = numbers >= 0
    codes = np.where(split, of_file, np.where(file.codes >= 0, file.codes + len(files.strings), -1))
    return (
        Text(np.r_[names.codes, np.int32(-1)][function.codes].astype(np.int32), names.strings),
        Text(codes.astype(np.int32), Strings.joined(files.strings, file.strings)),
        np.where(split, numbers, line).astype(np.int32),
    )
