"""Flax NNX with its optimizer."""

import sys

import numpy as np
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(1024, 1024, rngs=rngs) for _ in range(3)])

    def __call__(self, x):
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return x


@nnx.jit
def train_step(model, optimizer, x):
    loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return loss


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
for count in range(100):
    loss = train_step(model, optimizer, np.ones((int(sys.argv[1]), 1024), np.float32))
    print(count, float(loss))
