"""A configuration of Hydra, whose file is beside the script."""

import hydra
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


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    width = config.width
    params = [(jnp.ones((width, width)), jnp.ones(width)) for _ in range(3)]
    state = chain.init(params)
    for _ in range(100):
        params, state, loss = train_step(params, state, np.ones((config.batch, width), np.float32))
        print(float(loss))


main()
