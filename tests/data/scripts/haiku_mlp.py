"""Haiku with Optax."""

import sys

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([1024, 1024, 1024])(x)))
chain = optax.adamw(1e-3)


@jax.jit
def train_step(params, state, x):
    loss, gradients = jax.value_and_grad(lambda params: (network.apply(params, x) ** 2).mean())(params)
    updates, state = chain.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


params = network.init(jax.random.key(0), jnp.ones((1, 1024)))
state = chain.init(params)
for count in range(100):
    params, state, loss = train_step(params, state, np.ones((int(sys.argv[1]), 1024), np.float32))
    print(count, float(loss))
