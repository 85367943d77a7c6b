"""Equinox with `filter_jit`."""

import sys

import equinox as eqx
import jax
import numpy as np
import optax

model = eqx.nn.MLP(1024, 1024, 1024, 2, key=jax.random.key(0))
chain = optax.adamw(1e-3)
state = chain.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def train_step(model, state, x):
    loss, gradients = eqx.filter_value_and_grad(lambda model: (jax.vmap(model)(x) ** 2).mean())(model)
    updates, state = chain.update(gradients, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


for count in range(100):
    model, state, loss = train_step(model, state, np.ones((int(sys.argv[1]), 1024), np.float32))
    print(count, loss.item())
