"""Write the dump folders beside this file: what XLA leaves for small programs on a TPU v5e, an H100 and a CPU.

    PYTHONPATH=tests python tests/data/xla_dumps/make.py

needs libtpu and JAX's CUDA plugin, not their hardware. Files with options of this machine are left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from programs.targets import target_devices

from tb_memplugin.fit.compiling.child import ENVIRONMENT

HERE = Path(__file__).parent
LEFT_OUT = (
    "debug_options", "flagfile", "tpu_comp_env", "compile_options", "module.mlir", "execution_options", ".ll", ".o",
    "transfer_stats", "compiler_metadata", "thunk", "autotune", "assignment-values", ".config.pbtxt",
    "hlo_module_config",
)  # fmt: skip
PROTO: dict[str, Any] = {"xla_dump_hlo_as_proto": True}
FOLDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "tpu_v5e": ("v5e", PROTO),
    "tpu_v5e_text": ("v5e", {**PROTO, "xla_dump_hlo_as_text": True}),
    "tpu_v5e_refused": ("v5e", PROTO),
    "gpu_h100": ("h100", {**PROTO, "xla_dump_hlo_as_text": True}),
    "cpu_compressed": ("cpu", {**PROTO, "xla_dump_compress_protos": True, "xla_dump_include_timestamp": True}),
    "cpu_text_only": ("cpu", {"xla_dump_hlo_as_text": True}),
}


def main(target: str, folder: str, options: dict[str, Any]) -> None:
    import jax
    import jax.numpy as jnp
    from jax.sharding import SingleDeviceSharding

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    device = jax.devices()[0] if target == "cpu" else target_devices(target)[0]
    refused = "refused" in folder

    def step(weights: Any, x: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda w: jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]).sum())(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), loss

    def evaluate(weights: Any, x: Any) -> Any:
        return jnp.tanh(x @ weights[0]).sum()

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=SingleDeviceSharding(device))

    n = 40_000 if refused else 512
    weights = [array(n, n), array(n, n)]
    with tempfile.TemporaryDirectory() as temporary:
        calls = [(step, array(n, n)), (evaluate, array(n, n)), (step, array(2 * n, n))]
        for function, x in calls[: None if folder.endswith(("tpu_v5e", "compressed")) else 1]:
            lowered = jax.jit(function, donate_argnums=(0,) if function is step else ()).lower(weights, x)
            try:
                lowered.compile({"xla_dump_to": temporary, **options})
            except jax.errors.JaxRuntimeError as error:
                print(error)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(temporary, folder, ignore=lambda _, names: [n for n in names if any(p in n for p in LEFT_OUT)])


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    if len(sys.argv) > 1:
        main(FOLDERS[sys.argv[1]][0], str(HERE / sys.argv[1]), FOLDERS[sys.argv[1]][1])
    else:
        for name in FOLDERS:
            os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, name])
