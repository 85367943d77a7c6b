"""A loader of Grain."""

import sys

import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax

chain = optax.adamw(1e-3)


@jax.jit
def train_step(params, state, x):
    def loss(params):
        hidden = x
        for weight, bias in params:
            hidden = jax.nn.relu(hidden @ weight + bias)
        return (hidden**2).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = chain.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, value


data = grain.MapDataset.range(100000).map(lambda n: np.ones(1024, np.float32)).repeat().batch(int(sys.argv[1]))
params = [(jnp.ones((1024, 1024)), jnp.ones(1024)) for _ in range(3)]
state = chain.init(params)
for x in data:
    params, state, loss = train_step(params, state, x)
