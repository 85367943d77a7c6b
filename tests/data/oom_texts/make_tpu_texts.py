"""Write the texts tpu_v*.txt and tpu_7x*.txt beside this file: what libtpu says of programs that do not fit.

    PYTHONPATH=tests python tests/data/oom_texts/make_tpu_texts.py v5e FOLDER

needs libtpu, not a TPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from programs.targets import target_devices

from tb_memplugin.fit.compiling.child import ENVIRONMENT

TOO_LARGE = {"v4": 45_000, "v5e": 40_000, "v5p": 100_000, "v6e": 60_000, "tpu7x": 100_000}
ROWS, COLUMNS = 65536, 1024


def cases(target: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield the name of a text, a function that does not compile, and its arguments."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.sharding import SingleDeviceSharding

    sharding = SingleDeviceSharding(target_devices(target)[0])

    def array(*shape: int, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    def blocks(rows: int, limit: int | None = None) -> Callable[[Any], Any]:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * 2.0 + 1.0

        spec = pl.BlockSpec((rows, COLUMNS), lambda i: (i, 0))
        options: Any = {"compiler_params": pltpu.CompilerParams(vmem_limit_bytes=limit)} if limit else {}
        shape = jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)
        return lambda x: pl.pallas_call(
            kernel, grid=(ROWS // rows,), in_specs=[spec], out_specs=spec, out_shape=shape, **options
        )(x)

    def scratch(memory: Any) -> Callable[[Any], Any]:
        def kernel(x_ref: Any, o_ref: Any, scratch_ref: Any) -> None:
            o_ref[...] = x_ref[...] * 2.0

        shape = jax.ShapeDtypeStruct((256, 256), jnp.float32)
        return lambda x: pl.pallas_call(kernel, out_shape=shape, scratch_shapes=[memory])(x)

    def products(x: Any) -> Any:
        y = jnp.sin(x) @ x
        z = jnp.cos(y) @ y.T
        return (y @ z) + jnp.tanh(z) @ x + y

    small, large = (array(256, 256),), (array(ROWS, COLUMNS),)
    yield "blocks", blocks(16384), large
    yield "default", blocks(4096), large
    yield "blocks_limit", blocks(4096, 8 << 20), large
    yield "vmem_scratch", scratch(pltpu.VMEM((64, 1024, 1024), jnp.float32)), small
    yield "smem_scratch", scratch(pltpu.SMEM((4 << 20,), jnp.int32)), small
    yield "semaphores", scratch(pltpu.SemaphoreType.DMA((100_000,))), small
    yield "hbm", products, (array(TOO_LARGE[target], TOO_LARGE[target]),)


def main(target: str, folder: str) -> None:
    import jax

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    for name, function, arguments in cases(target):
        try:
            jax.jit(function).lower(*arguments).compile()
        except jax.errors.JaxRuntimeError as error:
            Path(folder, f"tpu_{target}_{name}.txt").write_text(f"{type(error).__name__}: {error}\n")


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    main(*sys.argv[1:])
