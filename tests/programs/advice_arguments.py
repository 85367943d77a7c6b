"""Programs whose knobs carry out advice on arguments: donation, sharding, the dtype of state and of computation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from programs.advice_models import Model, convolutional, language_model, mlp, optimizer, training_case
from programs.case import ADVISED, Case, CaseBuilder

BF16 = jnp.bfloat16
MODELS = {
    "mlp": lambda n: mlp(layers=4, batch=4096 * n),
    "wide_mlp": lambda n: mlp(width=8192, layers=3, batch=512 * n),
    "lm": lambda n: language_model(layers=3, batch=8 * n),
    "scan_lm": lambda n: language_model(layers=8, batch=8 * n, scan=True),
    "remat_lm": lambda n: language_model(layers=8, batch=8 * n, scan=True, remat=True),
    "unrolled_remat_lm": lambda n: language_model(layers=3, batch=8 * n, remat=True),
    "bf16_lm": lambda n: language_model(layers=3, batch=8 * n, dtype=jnp.bfloat16),
    "conv": lambda n: convolutional(layers=4, batch=64 * n),
}
OPTIMIZERS = ("adam", "adamw", "lion", "momentum", "adafactor", "rmsprop", "adagrad", "sgd", "clipped")
TRAINING = (
    *((model, "adam") for model in MODELS),
    *(("lm", name) for name in OPTIMIZERS if name != "adam"),
    ("mlp", "momentum"), ("mlp", "rmsprop"), ("scan_lm", "adamw"), ("scan_lm", "clipped"), ("conv", "momentum"),
)  # fmt: skip
ONE_DEVICE = ("v5e", "v6e", "h100")
SEVERAL = ("v5e", "h100")


def _training(model: str, name: str, devices_used: int, donated: bool) -> Any:
    def build(
        devices: list[Any], donate: bool = donated, mu_dtype: bool = False, all_dtype: bool = False,
        compute: bool = False, shard_params: bool = False, shard_optimizer: bool = False,
    ) -> Case:  # fmt: skip
        made: Model = MODELS[model](devices_used)
        chosen = optimizer(name, BF16 if mu_dtype else None, BF16 if all_dtype else None)
        return training_case(
            made, chosen, devices[:devices_used], donate=donate, compute=BF16 if compute else None,
            shard_params=shard_params, shard_optimizer=shard_optimizer,
        )  # fmt: skip

    return build


CHANGES = {
    "donation": {"donate": True},
    "Store the first moments": {"mu_dtype": True},
    "Store the momentum": {"mu_dtype": True},
    "Store optimizer state": {"all_dtype": True},
    "Compute in bf16": {"compute": True},
    "Shard state['opt']": {"shard_optimizer": True},
    "Shard state['params']": {"shard_params": True},
    "Shard state over": {"shard_params": True, "shard_optimizer": True},
}
for model, name in TRAINING:
    for used, targets in ((1, ONE_DEVICE), (4, SEVERAL)):
        for donated in (True, False):
            full = f"step_{model}_{name}{'_x4' if used > 1 else ''}{'' if donated else '_undonated'}"
            ADVISED[full] = CaseBuilder(full, _training(model, name, used, donated), targets, CHANGES)
