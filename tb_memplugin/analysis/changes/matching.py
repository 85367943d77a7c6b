"""Recordings of two captures that are of the same program or memory, by name, then by their arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.analysis.changes.names import template
from tb_memplugin.model.memory_facts import MemoryFacts

SIMILAR = 0.8  # of the arguments of a program that has another name now


class Matched(NamedTuple):
    """Pairs of facts, before and after, and those of one side."""

    pairs: list[tuple[MemoryFacts, MemoryFacts]]
    missing: list[MemoryFacts]
    added: list[MemoryFacts]


def identity(facts: MemoryFacts) -> tuple[str, str, str]:
    return facts.kind, facts.name, facts.memory


def signature(facts: MemoryFacts) -> frozenset[tuple[str, str]]:
    """Return paths and shapes of the arguments, which tell apart programs of one name."""
    return frozenset((template(argument.path), argument.shape) for argument in facts.arguments)


def match(before: Sequence[MemoryFacts], after: Sequence[MemoryFacts]) -> Matched:
    """Pair facts of one name: those with equal arguments, then in order of size; then renamed programs."""
    waiting = defaultdict[tuple[str, str, str], list[MemoryFacts]](list)
    for facts in sorted(after, key=_size):
        waiting[identity(facts)].append(facts)
    pairs, missing = list[tuple[MemoryFacts, MemoryFacts]](), list[MemoryFacts]()
    rest = list[MemoryFacts]()
    for old in sorted(before, key=_size):
        same = [new for new in waiting[identity(old)] if signature(new) == signature(old)]
        if same:
            pairs.append((old, same[0]))
            waiting[identity(old)].remove(same[0])
        else:
            rest.append(old)
    for old in rest:
        if waiting[identity(old)]:
            pairs.append((old, waiting[identity(old)].pop(0)))
        else:
            missing.append(old)
    added = [facts for others in waiting.values() for facts in others]
    for old in list(missing):
        similar = [(found, new) for new in added if (found := _similarity(old, new)) >= SIMILAR]
        if similar:
            new = max(similar, key=lambda found: found[0])[1]
            pairs.append((old, new))
            missing.remove(old)
            added.remove(new)
    return Matched(sorted(pairs, key=lambda pair: (identity(pair[1]), _size(pair[1]))), missing, added)


def _size(facts: MemoryFacts) -> tuple[int, str]:
    return -max(facts.peak_bytes, facts.reserved_bytes or 0), facts.name


def _similarity(a: MemoryFacts, b: MemoryFacts) -> float:
    """Return the share of arguments that two programs have in common; 0 for other recordings."""
    one, other = ({template(argument.path) for argument in facts.arguments} for facts in (a, b))
    if not a.kind.has_program or a.kind != b.kind or a.memory != b.memory or not one | other:
        return 0.0
    return len(one & other) / len(one | other)
