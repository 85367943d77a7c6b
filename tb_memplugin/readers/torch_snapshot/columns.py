"""What a snapshot tells of each life beside its time and bytes: category, label, pool and stream."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.readers.torch_snapshot.lifetimes import Lives
from tb_memplugin.readers.torch_snapshot.pickle_columns import Values, numbered_together
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments, pool_name
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace

# What the profiler of PyTorch calls them, and so traces that are made from it.
ROLES = {
    "parameter": Role.PARAMETER,
    "optimizer_state": Role.OPTIMIZER_STATE,
    "input": Role.INPUT,
    "temporary": Role.TEMPORARY,
    "activation": Role.ACTIVATION,
    "gradient": Role.GRADIENT,
    "autograd_detail": Role.TEMPORARY,
}
NO_CONTEXT = ("", "N/A")  # what PyTorch writes where nothing was being compiled


def roles(trace: Trace, lives: Lives) -> U8:
    strings = trace.category.strings
    of = np.array([*(ROLES.get(strings[i], Role.UNKNOWN) for i in range(len(strings))), Role.UNKNOWN], np.uint8)
    roles: U8 = np.r_[of[trace.category.codes], np.uint8(0)][lives.born].astype(np.uint8)
    return roles


def labels(trace: Trace, lives: Lives, values: Values, blocks: Blocks) -> Text:
    """What the user called it, what was being compiled, and what the allocator says that it made it for.

    Names are those of torch.cuda.memory._annotate_tensor, the last one where there are several, and of
    _set_memory_metadata.
    """
    strings, (user, context, internal, block) = _joined(
        trace.user_metadata, trace.compile_context, trace.internal_metadata, values.texts(blocks.user_metadata)
    )
    blank = np.array([*(strings[i] in NO_CONTEXT for i in range(len(strings))), True])
    old = lives.born < 0
    found = (
        np.r_[user, -1][_annotated(trace, lives)],
        np.where(old, np.r_[block, -1][lives.block], np.r_[user, -1][lives.born]),
        np.r_[context, -1][lives.born],
        np.r_[internal, -1][lives.born],
    )
    different, codes = numbered_together(*(np.where(blank[column], -1, column) for column in found))
    texts = [", ".join(dict.fromkeys(strings[i] for i in parts if i >= 0)) for parts in different.T.tolist()]
    return Text.of(texts).take(codes)


def _annotated(trace: Trace, lives: Lives) -> I64:
    """Per life the last event that named it, -1 for none: of those at its address, the ones while it was there."""
    marks = np.flatnonzero((trace.action == Action.ANNOTATE) & trace.known)
    found = np.full(len(lives.born), -1)
    if not len(marks) or not len(found):
        return found
    # By address, then by time: one number that sorts as both do.
    _, code = np.unique(np.r_[lives.address, trace.address[marks]], return_inverse=True)
    own, named = code[: len(found)], code[len(found) :]
    key = own * (len(trace) + 1) + lives.born + 1
    order = np.argsort(key)
    at = np.searchsorted(key[order], named * (len(trace) + 1) + marks + 1, side="right") - 1
    row = order[np.maximum(at, 0)]
    hit = (at >= 0) & (own[row] == named) & ((lives.freed[row] < 0) | (marks < lives.freed[row]))
    np.maximum.at(found, row[hit], marks[hit])
    return found


def _joined(*texts: Text) -> tuple[Strings, list[I64]]:
    """One table of strings for several columns, equal ones once, and their codes in it."""
    whole = Text.of([text.strings[i] for text in texts for i in range(len(text.strings))])
    firsts = np.cumsum([0, *(len(text.strings) for text in texts)])
    codes = np.r_[whole.codes, np.int32(-1)].astype(np.int64)
    return whole.strings, [
        codes[np.where(text.codes >= 0, text.codes + first, -1)] for text, first in zip(texts, firsts[:-1], strict=True)
    ]


def pools_and_streams(trace: Trace, segments: Segments, blocks: Blocks, lives: Lives) -> Text:
    """The pool and the stream that an allocation was made in; nothing where both are the default."""
    stream = np.where(lives.block >= 0, np.r_[blocks.stream, 0][lives.block], 0)
    stream = np.where(lives.born >= 0, np.r_[trace.stream, 0][lives.born], stream)
    pool = np.where(lives.block >= 0, np.r_[blocks.pool, -1][lives.block], -1)
    pool = np.where(pool < 0, np.r_[trace.pool, -1][lives.born], pool)
    pool = np.where(pool < 0, _pool_of_segment(segments, lives.address), pool)
    different, code = numbered_together(pool, stream)
    names = [
        ", ".join(filter(None, (pool_name(of_pool), f"stream {of_stream:#x}" if of_stream else "")))
        for of_pool, of_stream in zip(different[0].tolist(), different[1].astype(np.uint64).tolist(), strict=True)
    ]
    return Text.of(names).take(code)


def _pool_of_segment(segments: Segments, address: I64) -> I64:
    """Of the segment that lies at each address in the end; -1 where none does."""
    if not len(segments.address):
        return np.full(len(address), -1)
    base, wanted = segments.address.view(np.uint64), address.view(np.uint64)
    order = np.argsort(base, kind="stable")
    at = order[np.maximum(np.searchsorted(base[order], wanted, side="right") - 1, 0)]
    inside = (wanted >= base[at]) & (wanted - base[at] < segments.size[at].astype(np.uint64))
    return np.where(inside, segments.pool[at], -1)
