"""Roles, labels, operators, pools and streams of a snapshot's allocations."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.torch_profiler.exported_timeline import CATEGORIES
from tb_memplugin.readers.torch_snapshot.lifetimes import BlockLifetimes
from tb_memplugin.readers.torch_snapshot.pickle_values import number_rows
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments, pool_name
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction

OPERATOR = re.compile(r"at::_ops::(\w{1,200})::")
BACKWARD = re.compile(r"\b(\w{1,200}Backward\d{0,9})\b")


def operators(stacks: Stacks, leaf: I32) -> Text:
    """Return each row's outermost operator, `einsum` or `BmmBackward0: bmm`; empty where the stack has none."""
    operator = _outermost(stacks, OPERATOR)
    backward = _outermost(stacks, BACKWARD)
    distinct, codes = number_rows(np.r_[operator, -1][leaf], np.r_[backward, -1][leaf])
    forwards, backs = _names(stacks, OPERATOR, distinct[0]), _names(stacks, BACKWARD, distinct[1])
    texts = [": ".join(filter(None, names)) for names in zip(backs, forwards, strict=True)]
    return Text.of(texts).take(codes)


def _names(stacks: Stacks, pattern: re.Pattern[str], nodes: I64) -> list[str]:
    """Return the name in the function of each frame; empty for -1. A long function is searched once."""
    codes = np.where(nodes >= 0, stacks.function.codes[nodes], -1).tolist() if len(stacks.parent) else [-1] * len(nodes)
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


# Traces made from PyTorch's profiler contain its categories, with "_" for a space.
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
    distinct, codes = number_rows(*(np.where(blank[column], -1, column) for column in found))
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
    distinct, code = number_rows(pool, stream)
    names = [
        ", ".join(filter(None, (pool_name(of_pool), f"stream {of_stream:#x}" if of_stream else "")))
        for of_pool, of_stream in zip(distinct[0].tolist(), distinct[1].astype(np.uint64).tolist(), strict=True)
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
