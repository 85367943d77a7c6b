"""Small Pallas kernels with the VMEM that the TPU compiler gives them, stored for tests without a compiler.

    python -m programs.kernel_windows [TARGET ...]

compiles each kernel and writes tests/data/kernel_windows.json: its configuration, its shapes, and what it takes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from programs.targets import target_devices

from tb_memplugin.readers.hlo import read_hlo

STORED = Path(__file__).parents[1] / "data" / "kernel_windows.json"
BLOCK, ARRAY = (256, 1024), (4096, 1024)
USED = re.compile(rb'"used_scoped_memory_configs":\[\{"memory_space":"1","offset":"\d+","size":"(\d+)"\}')
CONFIG = re.compile(rb'"custom_call_config":\{"body":"[^"]+"')


class Kernel(NamedTuple):
    body: Callable[..., None]
    blocks: tuple[pl.BlockSpec, ...]  # of the arguments and the result
    shapes: tuple[tuple[int, ...], ...]
    grid: tuple[int, ...] = (16,)
    dtype: Any = jnp.float32
    scratch: tuple[Any, ...] = ()


def rows(block: tuple[int, ...] = BLOCK, **options: Any) -> pl.BlockSpec:
    return pl.BlockSpec(block, lambda i: (i, 0), **options)


def same(block: tuple[int, ...]) -> pl.BlockSpec:
    return pl.BlockSpec(block, lambda i: (0, 0))


def double(x: Any, out: Any) -> None:
    out[...] = x[...] * 2


def add(x: Any, y: Any, out: Any) -> None:
    out[...] = x[...] + y[...]


def attend(x: Any, out: Any) -> None:
    out[...] = jax.nn.softmax(x[...] @ x[...].T, axis=-1) @ x[...]


def add_up(x: Any, out: Any, total: Any) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += x[...]
    out[...] = total[...]


KERNELS = {
    "two_buffers": Kernel(double, (rows(), rows()), (ARRAY, ARRAY)),
    "bf16": Kernel(double, (rows(), rows()), (ARRAY, ARRAY), dtype=jnp.bfloat16),
    "the_same_block_again": Kernel(add, (rows(), same(BLOCK), rows()), (ARRAY, BLOCK, ARRAY)),
    "one_row": Kernel(add, (rows(), same((1, 1024)), rows()), (ARRAY, (1, 1024), ARRAY)),
    "one_row_bf16": Kernel(add, (rows(), same((1, 1024)), rows()), (ARRAY, (1, 1024), ARRAY), dtype=jnp.bfloat16),
    "one_iteration": Kernel(double, (rows(), rows()), (BLOCK, BLOCK), grid=(1,)),
    "no_grid": Kernel(double, (pl.BlockSpec(memory_space=pltpu.VMEM),) * 2, (BLOCK, BLOCK), grid=()),
    "asked_for_one_buffer": Kernel(double, (rows(pipeline_mode=pl.Buffered(1)), rows()), (ARRAY, ARRAY)),
    "scratch": Kernel(add_up, (rows(), rows()), (ARRAY, ARRAY), scratch=(pltpu.VMEM(BLOCK, jnp.float32),)),
    "attention": Kernel(attend, (rows(), rows()), (ARRAY, ARRAY)),
}


def compile_kernel(name: str, target: str, folder: str) -> None:
    """Compile a kernel for a target, and dump its stages."""
    kernel = KERNELS[name]
    place = jax.sharding.SingleDeviceSharding(target_devices(target)[0])
    *arguments, result = (jax.ShapeDtypeStruct(shape, kernel.dtype, sharding=place) for shape in kernel.shapes)
    call = pl.pallas_call(
        kernel.body,
        out_shape=result,
        grid=kernel.grid,
        in_specs=kernel.blocks[:-1],
        out_specs=kernel.blocks[-1],
        scratch_shapes=kernel.scratch,
    )
    options: dict[str, str | bool] = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
    jax.jit(call, out_shardings=place).lower(*arguments).compile(compiler_options=options)


def describe(name: str, target: str) -> dict[str, Any]:
    """Compile a kernel in a process of its own, and return what the compiler says of it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "programs.kernel_windows", name, target, folder], check=True)
        stages = {path.name: path.read_bytes() for path in Path(folder).glob("*.hlo.pb")}
    [codegen] = (data for stage, data in stages.items() if "after_codegen" in stage)
    config = next(found for data in stages.values() if (found := CONFIG.search(data)))
    [optimized] = (data for stage, data in stages.items() if "after_optimizations.hlo" in stage)
    [memory] = (r.program.kernels[0] for r in read_hlo(optimized, source=name) if r.program and r.program.kernels)
    [used] = USED.findall(codegen)
    return {
        "name": name,
        "target": target,
        "config": config[0].decode(),
        "operands": memory.operands,
        "result": memory.result,
        "used": int(used),
    }


def main(*targets: str) -> None:
    found = [describe(name, target) for target in targets or ("v5e", "tpu7x") for name in KERNELS]
    STORED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    compile_kernel(*sys.argv[1:]) if len(sys.argv) == 4 else main(*sys.argv[1:])
