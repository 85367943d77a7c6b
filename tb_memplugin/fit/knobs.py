"""Knobs of a step as users write them: `batch`, `batch=8:512:8`, `remat=none,full`; and changes that `fit` makes.

Changes are short texts:

    donate:state,cache             donate these arguments
    shard:data:params,state[1]     split each array in them along an axis of its mesh; 4 is an axis of four devices
    drop-unused                    let JAX drop the arguments that the function never reads
    remat:full                     keep only the inputs of scans' bodies and of functions in jax.checkpoint, and compute
                                   the rest again in the backward pass; `dots` keeps products with weights, too,
                                   and `none` all that functions in jax.checkpoint compute
    remat:names:attention,mlp      keep only the arrays with these names, which checkpoint_name gives
    remat:offload:attention,mlp    move these to the host until the backward pass needs them
    option:NAME=VALUE              compile with an option of XLA
    set:microbatches=2             call the step with another value of a knob
    torch:checkpoint               change a step of PyTorch; OfTorch lists the changes

Arguments are named as in JAX's own messages: `params`, `state.opt_state`, `args[0]`, `params['layer_0']`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Knob, OfTorch, Remat, parse_remat, parse_value

RANGE = re.compile(r"(\d{1,9}):(\d{1,9})(?::(\d{1,9}))?")
NAME = re.compile(r"[A-Za-z_]\w{0,99}")
TIMES = 1024  # the default range ends at its first value times this


@dataclass(frozen=True)
class Varied:
    """A knob with its values. If it is `searched`, the largest value that fits is wanted; else each value is tried."""

    name: str
    values: Sequence[Knob]
    searched: bool

    @property
    def numbers(self) -> range:
        """The values of a searched knob."""
        assert isinstance(self.values, range)
        return self.values


def parse_varied(text: str, default: object) -> Varied:
    """Parse the value of --vary. A range without a beginning begins at `default`, the knob's value in the function."""
    name, _, values = text.partition("=")
    if not NAME.fullmatch(name):
        raise InputError("No name of a knob", text, "write --vary batch, batch=8:512:8, or remat=none,full")
    if not values:
        if not isinstance(default, int) or default < 1:
            raise InputError("No range", text, f"write --vary {name}=LOW:HIGH, as {name} has no number as default")
        return Varied(name, range(default, TIMES * default + 1, default), searched=True)
    if found := RANGE.fullmatch(values):
        low, high, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if low < 1 or high < low or step < 1:
            raise InputError("An empty range", text, "write LOW:HIGH or LOW:HIGH:STEP, with LOW at least 1")
        return Varied(name, range(low, high + 1, step), searched=True)
    return Varied(name, [parse_value(value) for value in values.split(",")], searched=False)


def parse_fixed(text: str) -> tuple[str, Knob]:
    """Parse the value of --set."""
    name, equals, value = text.partition("=")
    if not NAME.fullmatch(name) or not equals:
        raise InputError("No value of a knob", text, "write --set batch=8")
    return name, parse_value(value)


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
    remat: Remat | None = None
    options: dict[str, Knob] = field(default_factory=dict)
    knobs: dict[str, Knob] = field(default_factory=dict)
    of_torch: list[OfTorch] = field(default_factory=list)

    @property
    def of_function(self) -> bool:
        """Return whether the jitted function itself changes."""
        return bool(self.donated or self.sharded or self.drops_unused)


def parse_changes(texts: Sequence[str]) -> Changes:
    """Parse changes. InputError for a text that is not a change."""
    changes = Changes()
    for text in texts:
        kind, _, rest = text.partition(":")
        if kind == "donate" and rest:
            changes.donated += ARGUMENT.findall(rest)
        elif kind == "shard" and (names := ARGUMENT.findall(rest.partition(":")[2])):
            changes.sharded.append(SplitArguments(rest.partition(":")[0], tuple(names)))
        elif text == "drop-unused":
            changes.drops_unused = True
        elif kind == "remat" and (remat := parse_remat(rest)) is not None:
            changes.remat = remat
        elif text in [*OfTorch]:
            changes.of_torch.append(OfTorch(text))
        elif kind in ("option", "set"):
            name, value = parse_fixed(rest)
            (changes.options if kind == "option" else changes.knobs)[name] = value
        else:
            known = "write donate:, shard:, drop-unused, remat:, option:, set: or torch:"
            raise InputError("No such change", text, known)
    return changes


def is_inside(path: str, argument: str) -> bool:
    """Return whether the path of an array is an argument, or within it."""
    return path.startswith(argument) and path[len(argument) : len(argument) + 1] in ("", "[", ".")
