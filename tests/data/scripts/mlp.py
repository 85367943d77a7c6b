"""The step of scripts that show something else: three layers, trained by AdamW."""

import jax
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
