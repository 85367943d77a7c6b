"""Changes that `fit` makes to a candidate, as short texts.

    donate:state,cache             donate these arguments
    shard:data:params,state[1]     split each array in them along an axis of its mesh; 4 is an axis of four devices
    drop-unused                    let JAX drop the arguments that the function never reads
    option:NAME=VALUE              compile with an option of XLA
    set:microbatches=2             call the step with another value of a knob

Arguments are named as in JAX's own messages: `params`, `state.opt_state`, `args[0]`, `params['layer_0']`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import parse_fixed
from tb_memplugin.model.fit import Knob

# A name, with commas only inside of its quotes and brackets.
ARGUMENT = re.compile(r"""(?:'[^']*'|"[^"]*"|\[[^\]]*\]|[^,'"\[\]])+""")


@dataclass(frozen=True)
class SplitArguments:
    """Arguments to split along an axis of their mesh."""

    axis: str
    arguments: tuple[str, ...]


@dataclass
class Changes:
    """Changes to a candidate."""

    donated: list[str] = field(default_factory=list)
    sharded: list[SplitArguments] = field(default_factory=list)
    drops_unused: bool = False
    options: dict[str, Knob] = field(default_factory=dict)
    knobs: dict[str, Knob] = field(default_factory=dict)

    @property
    def of_function(self) -> bool:
        """Return whether the jitted function itself changes."""
        return bool(self.donated or self.sharded or self.drops_unused)


def parse_changes(texts: Sequence[str]) -> Changes:
    """Parse changes. InputError for a text that is none."""
    changes = Changes()
    for text in texts:
        kind, _, rest = text.partition(":")
        if kind == "donate" and rest:
            changes.donated += ARGUMENT.findall(rest)
        elif kind == "shard" and (names := ARGUMENT.findall(rest.partition(":")[2])):
            changes.sharded.append(SplitArguments(rest.partition(":")[0], tuple(names)))
        elif text == "drop-unused":
            changes.drops_unused = True
        elif kind in ("option", "set"):
            name, value = parse_fixed(rest)
            (changes.options if kind == "option" else changes.knobs)[name] = value
        else:
            raise InputError("No such change", text, "write donate:, shard:, drop-unused, option: or set:")
    return changes


def is_inside(path: str, argument: str) -> bool:
    """Return whether the path of an array is an argument, or within it."""
    return path.startswith(argument) and path[len(argument) : len(argument) + 1] in ("", "[", ".")
