"""Devices of a target, as descriptions without hardware, and the environment in which JAX makes them."""

from __future__ import annotations

from typing import Any

from tb_memplugin.targets.gpus import gpu_target_config, gpu_topology
from tb_memplugin.targets.target import Target
from tb_memplugin.targets.tpu_slices import TPUS

# Without these, libtpu looks for hardware, and a second process aborts on its lock.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def devices_of(target: Target) -> list[Any]:
    """Return the devices of a target, as descriptions without hardware, in a process that has ENVIRONMENT set."""
    import jax
    from jax.experimental import topologies

    if target.platform == "cpu":
        jax.config.update("jax_num_cpu_devices", target.chips)
        return list(jax.devices("cpu"))
    if target.platform == "tpu":
        options = dict(TPUS[target.chip].options)
        found = topologies.get_topology_desc(platform="tpu", topology_name=str(target), **options)
        return list(found.devices)
    from jax._src import xla_bridge

    xla_bridge.backends()  # loads the plugin
    shape = gpu_topology(target.chips)
    found = topologies.get_topology_desc(
        platform="cuda", topology_name=shape, topology=shape, target_config=gpu_target_config(target.chip)
    )
    return list(found.devices)
