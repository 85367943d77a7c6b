"""Keras 3 with the JAX backend: `model.fit`."""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np

model = keras.Sequential([keras.Input((1024,)), *(keras.layers.Dense(1024, activation="relu") for _ in range(3))])
model.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="mse")
size = int(sys.argv[1])
x = np.ones((4 * size, 1024), np.float32)
model.fit(x, x, batch_size=size, epochs=10)
