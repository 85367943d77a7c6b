"""A training step of any loss, with a knob for each change that advice may suggest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Knobs, Tree
from programs.sharding import fully_sharded, grid, replicated, shapes, split_batch
from programs.training import TRAINED, cast, mean_gradients

CHANGES: dict[str, Knobs] = {
    "donation": {"donate": True},
    "rematerialization": {"remat": "layer"},
    "microbatching": {"microbatches": 2},
    "Compute_in_bf16": {"compute": "bfloat16"},
    "Store_": {"state": "bfloat16"},
    "offload": {"gradients_alone": True},
    "Shard": {"shard": True},
}
ON_ONE = {name: knobs for name, knobs in CHANGES.items() if name != "Shard"}
Shapes = Mapping[str, tuple[tuple[int, ...], Any]]  # of the batch


@dataclass(frozen=True)
class Changed:
    """The changes that a program carries out."""

    donate: bool = False
    remat: str = "none"
    microbatches: int = 1
    compute: str = "float32"
    state: str | None = None
    gradients_alone: bool = False
    shard: bool = False


def weights(**named: tuple[int, ...]) -> Tree:
    return {name: jnp.zeros(shape) for name, shape in named.items()}


def optimizers(name: str, dtype: str | None) -> optax.GradientTransformation:
    """Return an optimizer whose state, or first moments, are in a dtype."""
    made: dict[str, Callable[[], optax.GradientTransformation]] = {
        "adam": lambda: optax.adam(1e-3, mu_dtype=dtype),
        "adamw": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, mu_dtype=dtype)),
        "momentum": lambda: optax.sgd(0.1, momentum=0.9, accumulator_dtype=dtype),
        "lion": lambda: optax.lion(1e-3, mu_dtype=dtype),
        "adafactor": lambda: optax.adafactor(1e-3),
    }
    return made[name]()


def step_case(
    devices: list[Any], params: Callable[[], Tree], loss: Callable[[Tree, Tree, str], Any], batch: Shapes,
    optimizer: str, changed: Changed,
) -> Case:  # fmt: skip
    """Return the case of a training step; `loss` takes parameters, a batch and the kind of rematerialization."""
    chosen = optimizers(optimizer, changed.state)

    def narrow_loss(params: Tree, batch: Tree) -> Any:
        narrow = cast(params, changed.compute), cast(batch, changed.compute)
        return loss(*(narrow if changed.compute != "float32" else (params, batch)), changed.remat)

    def gradients(params: Tree, batch: Tree) -> Any:
        return mean_gradients(narrow_loss, params, batch, changed.microbatches, interleaved=len(devices) > 1)

    def step(params: Tree, opt_state: Tree, batch: Tree) -> Any:
        value, grads = gradients(params, batch)
        updates, opt_state = chosen.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    def initial() -> Tree:
        made = params()
        return {"params": made, "opt": chosen.init(made)}

    one = split_batch(devices)
    data = {name: one(shape, dtype) for name, (shape, dtype) in batch.items()}
    place = fully_sharded(initial, grid(devices, 1)) if changed.shard else shapes(initial, replicated(devices))
    if changed.gradients_alone:
        return Case(jax.jit(gradients), (place["params"], data), ("parameter", "input"))
    out = jax.tree.map(lambda a: a.sharding, (place["params"], place["opt"]))
    jitted = jax.jit(
        step, donate_argnums=(0, 1) if changed.donate else (), out_shardings=(*out, None) if changed.shard else None
    )
    return Case(jitted, (place["params"], place["opt"], data), (TRAINED["params"], TRAINED["opt"], "input"))
