"""Run the examples on the device that is here, and compare its allocator's peak with what `fit` says without it.

    python -m programs.on_a_gpu [--on h100:1]

prints a line for each program: the bytes that the compiler reserves here, the peak of `device.memory_stats()` after
three steps, and the bytes that `fit` reserves for the target without using the device. Each program has a process of
its own, because the peak of an allocator is never reset. `tests/data/h100/programs.json` has such figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("transformer", {"batch": 16, **knobs}) for knobs in ({}, {"remat": "full"}, {"remat": "dots"})),
    ("transformer", {"batch": 16, "microbatches": 2}),
    *(("transformer", {"batch": batch}) for batch in (24, 32)),
    *(("transformer", {"batch": batch, "remat": "full"}) for batch in (192, 200)),
    ("resnet", {"batch": 256}),
    ("resnet", {"batch": 256, "remat": True}),
    ("decode", {}),
)
# The arguments that the first results replace, or of a decode step the second result.
STATE = {"transformer": (0,), "resnet": (0, 1), "decode": (1,)}


def run(example: str, knobs: dict[str, Any]) -> dict[str, int | str | None]:
    """Compile an example for the first device here, and run three steps on zeros."""
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, str(EXAMPLES))
    function, shapes = __import__(example).step(jax.devices()[:1], **knobs)
    compiled = function.lower(*shapes).compile()
    found = compiled.memory_analysis()
    row: dict[str, int | str | None] = {"reserved": found.argument_size_in_bytes + found.temp_size_in_bytes}
    try:
        arguments = list(jax.jit(lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))())
        for _ in range(3):
            results = compiled(*arguments)
            new = results[1:] if example == "decode" else results
            for place, value in zip(STATE[example], new, strict=False):
                arguments[place] = value
            jax.block_until_ready(results)
        stats = jax.devices()[0].memory_stats()
        row["peak"] = stats["peak_bytes_in_use"] if stats else None
    except jax.errors.JaxRuntimeError as error:
        row["peak"] = str(error).partition(":")[0]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="h100:1")
    parser.add_argument("--run", nargs=2, metavar=("EXAMPLE", "KNOBS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run[0], json.loads(options.run[1]))))
        return
    from tb_memplugin import fit

    for example, knobs in RUNS:
        words = [sys.executable, "-m", "programs.on_a_gpu", "--run", example, json.dumps(knobs)]
        child = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
        predicted = fit.compile(f"{EXAMPLES / example}.py:step", on=options.on, **knobs)
        row = {"example": example, **knobs, **json.loads(child.stdout), "fit": predicted.reserved_bytes}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
