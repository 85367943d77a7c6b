"""Watch the memory of `model.fit` of Keras, with the JAX backend."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

from tb_memplugin import capture


class MarkSteps(keras.callbacks.Callback):
    """Marks each training step in the memory curve."""

    def __init__(self, watched: capture.Watch) -> None:
        super().__init__()
        self.watched = watched
        self.steps = 0

    def on_train_batch_begin(self, batch: int, logs: dict[str, float] | None = None) -> None:
        self.watched.step(self.steps)
        self.steps += 1


def main(logdir: str, steps: int = 20) -> None:
    model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    inputs = np.random.default_rng(0).standard_normal((32 * steps, 64), np.float32)

    with capture.watch(logdir) as watched:
        model.fit(inputs, inputs.sum(1), batch_size=32, verbose=0, callbacks=[MarkSteps(watched)])


if __name__ == "__main__":
    main(sys.argv[1])
