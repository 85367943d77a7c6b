"""Cases: programs with the truth about their arguments, to compile for accelerators that this machine does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Tree = Any  # a JAX pytree
Knobs = Mapping[str, Any]
ROLES = ("parameter", "optimizer state", "state", "input")


@dataclass(frozen=True)
class Case:
    """A jitted function, the shapes of its arguments, and the role of each argument.

    `roles` is a prefix of the tree `arguments`, as of `jax.tree.broadcast`, with one of ROLES at each leaf.
    """

    function: Any
    arguments: tuple[Tree, ...]
    roles: Tree


@dataclass(frozen=True)
class CaseBuilder:
    """A program of the corpus: builds its case for some devices, with changes that advice may suggest as knobs."""

    name: str
    build: Callable[..., Case]  # (devices, **knobs)
    targets: tuple[str, ...]  # of targets.TARGETS
    # The knobs that carry advice out, by its kind or by the beginning of its title.
    changes: Mapping[str, Knobs] = field(default_factory=dict)

    @property
    def knobs(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.build).parameters)[1:]


CORPUS: dict[str, CaseBuilder] = {}
ADVISED: dict[str, CaseBuilder] = {}  # further programs, to carry out advice on; their dumps are not stored


def program(*targets: str, **changes: Knobs) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Add the decorated builder to the corpus, under its own name."""

    def add(build: Callable[..., Case]) -> Callable[..., Case]:
        name = build.__name__
        if name in CORPUS:
            raise ValueError(f"The corpus already has a program {name}")
        CORPUS[name] = CaseBuilder(name, build, targets, {kind.replace("_", " "): k for kind, k in changes.items()})
        return build

    return add


def advised(*targets: str, **changes: Knobs) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Add the decorated builder to the programs to carry out advice on, under its own name."""

    def add(build: Callable[..., Case]) -> Callable[..., Case]:
        named = {kind.replace("_", " "): knobs for kind, knobs in changes.items()}
        ADVISED[build.__name__] = CaseBuilder(build.__name__, build, targets, named)
        return build

    return add
