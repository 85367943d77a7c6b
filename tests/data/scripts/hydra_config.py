"""A configuration of Hydra, whose file is beside the script."""

import hydra
import jax.numpy as jnp
import numpy as np
from mlp import chain, train_step


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    width = config.width
    params = [(jnp.ones((width, width)), jnp.ones(width)) for _ in range(3)]
    state = chain.init(params)
    for _ in range(100):
        params, state, loss = train_step(params, state, np.ones((config.batch, width), np.float32))
        print(float(loss))


main()
