"""Arguments of a program before and after: of one path, else of one path but for numbers, else of equal content."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from tb_memplugin.analysis.changes.names import template
from tb_memplugin.model.memory_facts import ArgumentFacts, MemoryFacts

MAX_LISTED = 80  # arguments; smaller ones are in no list


class ArgumentPair(NamedTuple):
    """An argument before and after, which may have another name."""

    before: ArgumentFacts
    after: ArgumentFacts

    @property
    def is_renamed(self) -> bool:
        return template(self.before.path) != template(self.after.path)


class PairedArguments(NamedTuple):
    """The arguments of both sides, and those that only one side has."""

    pairs: dict[str, ArgumentPair]  # by the path after
    added: list[ArgumentFacts]
    removed: list[ArgumentFacts]


def paired_arguments(before: MemoryFacts, after: MemoryFacts) -> PairedArguments:
    """Pair the arguments of both sides. Those too small for the list of the other side are left out."""
    removed, added = list(before.arguments), list(after.arguments)
    pairs = _take_pairs(removed, added, lambda argument: argument.path)
    pairs += _take_pairs(removed, added, lambda argument: template(argument.path))
    pairs += _take_pairs(removed, added, _content)
    return PairedArguments(
        {pair.after.path: pair for pair in pairs},
        [argument for argument in added if argument.bytes > _least_listed(before)],
        [argument for argument in removed if argument.bytes > _least_listed(after)],
    )


def _take_pairs(
    removed: list[ArgumentFacts], added: list[ArgumentFacts], key: Callable[[ArgumentFacts], Hashable]
) -> list[ArgumentPair]:
    """Move arguments of one key from both lists into pairs; of several, those whose paths have most in common."""
    pairs = []
    for old in list(removed):
        if same := [new for new in added if key(new) == key(old)]:
            new = min(same, key=lambda new: (-_keys_in_common(old.path, new.path), new.path))
            pairs.append(ArgumentPair(old, new))
            removed.remove(old)
            added.remove(new)
    return pairs


def _content(argument: ArgumentFacts) -> Hashable:
    return argument.shape, argument.arrays


def _keys_in_common(a: str, b: str) -> int:
    """Return the number of keys that both paths begin and end with."""
    one, other = a.split("/"), b.split("/")
    return sum(
        next((i for i, (x, y) in enumerate(zip(p, q, strict=False)) if x != y), min(len(p), len(q)))
        for p, q in ((one, other), (one[::-1], other[::-1]))
    )


def _least_listed(facts: MemoryFacts) -> int:
    return facts.arguments[-1].bytes if len(facts.arguments) >= MAX_LISTED else -1
