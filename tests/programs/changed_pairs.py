"""Pairs of programs that differ by one change, whose cause a check against a baseline must name.

    python -m programs.changed_pairs [NAME ...]

compiles them for TPU and GPU, without either, and writes tests/data/changed_programs/NAME.TARGET.hlo.pb.gz.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from programs.targets import target_devices

from tb_memplugin.fit.compiling.child import ENVIRONMENT
from tb_memplugin.fit.compiling.compiling import is_assigned, programs_of

FOLDER = Path(__file__).parent.parent / "data" / "changed_programs"
WIDTH = 256
NAMES, OTHER_NAMES = ("up", "down"), ("wi", "wo")
Tree = Any
# Name -> the knobs that change the base.
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "not_donated": {"donate": False},
    "recomputed": {"recompute": True},
    "replicated": {"replicate": True},
    "replicated_batch": {"split_batch": False},
    "renamed": {"renamed": True},
    "second_moment": {"moments": ("mu", "nu")},
    "half": {"dtype": "bfloat16"},
    "more_layers": {"layers": 4},
    "larger_batch": {"batch": 262144},
    "microbatches": {"microbatches": 4},
    "small_batch": {"batch": 512},
    "host": {"host": True, "batch": 512},
    "scan": {"scan": True},
    "scan_recomputed": {"scan": True, "recompute": True},
    "scan_more_layers": {"scan": True, "layers": 4},
}
TARGETS = {"v5e": tuple(VARIANTS), "h100": ("base", "not_donated", "recomputed", "more_layers", "microbatches")}


def layer(w: Tree, x: Array) -> Any:
    up, down = NAMES if "up" in w else OTHER_NAMES
    return x + jnp.square(jax.nn.gelu(x @ w[up])) @ w[down]


def training_step(
    mesh: Mesh, layers: int = 3, batch: int = 131072, donate: bool = True, recompute: bool = False,
    replicate: bool = False, dtype: str = "float32", scan: bool = False, split_batch: bool = True,
    renamed: bool = False, moments: tuple[str, ...] = ("mu",), microbatches: int = 1, host: bool = False,
) -> Any:  # fmt: skip
    """Return a jitted step of (state, batch) and its arguments: weights and momentum split over the devices.

    `host`: momentum is in the host's memory between steps.
    """
    apply = jax.checkpoint(layer) if recompute else layer
    name, (up, down) = ("block", OTHER_NAMES) if renamed else ("layer", NAMES)

    def loss(params: Tree, x: Array, y: Array) -> Any:
        if scan:
            x, _ = jax.lax.scan(lambda x, w: (apply(w, x), None), x, params["layers"])
        for i in range(0 if scan else layers):
            with jax.named_scope(f"{name}_{i}"):
                x = apply(params[f"{name}_{i}"], x)
        return jnp.mean((x - y).astype(jnp.float32) ** 2)

    def gradients(params: Tree, batch: Tree) -> Any:
        if microbatches == 1:
            return jax.value_and_grad(loss)(params, batch["x"], batch["y"])

        def add(sums: Tree, part: Tree) -> Any:
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(loss)(params, part["x"], part["y"])), None

        split = NamedSharding(mesh, PartitionSpec(None, "data"))
        parts = jax.tree.map(lambda a: a.reshape(microbatches, -1, *a.shape[1:]), batch)
        parts = jax.tree.map(lambda a: jax.lax.with_sharding_constraint(a, split), parts)
        return jax.lax.scan(add, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)), parts)[0]

    def step(state: Tree, batch: Tree) -> Any:
        value, grads = gradients(state["params"], batch)
        if host:
            state = jax.device_put(state, jax.memory.Space.Device)
        averages = {key: jax.tree.map(lambda m, g: 0.9 * m + g, state[key], grads) for key in moments}
        return {"params": jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], averages["mu"]), **averages}, value

    def place(shape: tuple[int, ...], *split: str | None) -> Any:
        spec = PartitionSpec() if replicate and "data" not in split[:1] else PartitionSpec(*split)
        return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=NamedSharding(mesh, spec))

    front = ((layers,), (None,)) if scan else ((), ())
    one = {
        up: place((*front[0], WIDTH, 4 * WIDTH), *front[1], None, "data"),
        down: place((*front[0], 4 * WIDTH, WIDTH), *front[1], None, "data"),
    }
    params = {"layers": one} if scan else {f"{name}_{i}": one for i in range(layers)}
    moved = jax.tree.map(lambda a: a.update(sharding=a.sharding.with_memory_kind("pinned_host")), params)
    state = {"params": params, **dict.fromkeys(moments, moved if host else params)}
    x = place((batch, WIDTH), "data" if split_batch else None)
    shardings = jax.tree.map(lambda a: a.sharding, state)
    out = (shardings, NamedSharding(mesh, PartitionSpec()))
    return jax.jit(step, donate_argnums=(0,) if donate else (), out_shardings=out), (state, {"x": x, "y": x})


def build(devices: list[Any], **knobs: Any) -> Any:
    """Return a jitted function and its arguments."""
    mesh = Mesh(np.array(devices), ("data",))
    return training_step(mesh, **knobs)


def compile_variant(target: str, folder: Path, knobs: Mapping[str, Any]) -> bytes:
    """Compile in a process of its own; return the program, which is complete long before the compile ends."""
    words = [sys.executable, "-m", "programs.changed_pairs", "--compile", target, str(folder), json.dumps(knobs)]
    path = os.pathsep.join(map(str, Path(__file__).parents[1:3]))
    child = subprocess.Popen(words, env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path})
    while child.poll() is None and not is_assigned(folder):
        time.sleep(0.1)
    child.kill()
    child.wait()
    return programs_of(folder)[-1].read_bytes()


def compile_here(target: str, folder: str, knobs: str) -> None:
    """Compile in this process."""
    config: Any = jax.config
    config.update("jax_hlo_source_file_canonicalization_regex", r".*/(?=tests/|site-packages/|lib/python)")
    function, arguments = build(target_devices(target), **json.loads(knobs))
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
    function.lower(*arguments).compile(options)


def main(*names: str) -> None:
    for target, variants in TARGETS.items():
        for name in variants:
            if not names or name in names:
                with tempfile.TemporaryDirectory() as folder:
                    program = compile_variant(target, Path(folder), VARIANTS[name])
                gzipped = gzip.compress(program, compresslevel=9, mtime=0)
                (FOLDER / f"{name}.{target}.hlo.pb.gz").write_bytes(gzipped)
                print(f"{name}.{target} {len(gzipped) >> 10} KiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compile"]:
        compile_here(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
