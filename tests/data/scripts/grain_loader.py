"""A loader of Grain."""

import sys

import grain
import jax.numpy as jnp
import numpy as np
from mlp import chain, train_step

data = grain.MapDataset.range(100000).map(lambda n: np.ones(1024, np.float32)).repeat().batch(int(sys.argv[1]))
params = [(jnp.ones((1024, 1024)), jnp.ones(1024)) for _ in range(3)]
state = chain.init(params)
for x in data:
    params, state, loss = train_step(params, state, x)
