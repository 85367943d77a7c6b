"""Flax linen with a TrainState and a chain of Optax."""

import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(1024)(x))
        return x


@jax.jit
def train_step(state, x):
    loss, gradients = jax.value_and_grad(lambda params: (state.apply_fn(params, x) ** 2).mean())(state.params)
    return state.apply_gradients(grads=gradients), loss


model = Model()
chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
params = model.init(jax.random.key(0), jnp.ones((1, 1024)))
state = TrainState.create(apply_fn=model.apply, params=params, tx=chain)
for count in range(100):
    state, loss = train_step(state, np.ones((int(sys.argv[1]), 1024), np.float32))
    print(count, float(loss))
