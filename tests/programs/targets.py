"""Accelerators to compile for, without having one."""

from __future__ import annotations

from typing import Any

TPU_TOPOLOGIES = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}  # four chips each; a chip of v4 and later than v5e may be several devices
GPUS = {
    "h100": {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "shared_memory_per_block": 49152,
        "shared_memory_per_core": 233472, "threads_per_core_limit": 2048, "core_count": 132, "fpus_per_core": 128,
        "block_dim_limit_x": 2147483647, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "memory_bandwidth": 3352320000000, "l2_cache_size": 52428800, "clock_rate_ghz": 1.98,
        "device_memory_size": 84978434048, "shared_memory_per_block_optin": 232448,
        "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
    },
}  # fmt: skip
GPU_NAMES = {"h100": ("NVIDIA H100 80GB HBM3", 9, 0)}
TARGETS = (*TPU_TOPOLOGIES, *GPUS)
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def target_devices(target: str) -> list[Any]:
    """Return the devices of a target, as descriptions without hardware. Needs ENVIRONMENT to be set before JAX loads.

    A TPU has a topology of four chips; a GPU has four devices on one host.
    """
    from jax.experimental import topologies

    if target in TPU_TOPOLOGIES:
        return list(topologies.get_topology_desc(platform="tpu", topology_name=TPU_TOPOLOGIES[target]).devices)
    from jax._src import xla_bridge

    xla_bridge.backends()  # loads the plugin
    shape = "1x1x4"
    return list(
        topologies.get_topology_desc(
            platform="cuda", topology_name=shape, topology=shape, target_config=gpu_target_config(target)
        ).devices
    )


def gpu_target_config(target: str) -> str:
    """Return the text form of XLA's GpuTargetConfig."""
    name, major, minor = GPU_NAMES[target]
    info = "\n".join(f"  {key}: {value}" for key, value in GPUS[target].items())
    return (
        f"gpu_device_info {{\n{info}\n  cuda_compute_capability {{ major: {major} minor: {minor} }}\n}}\n"
        'platform_name: "CUDA"\ndnn_version_info { major: 9 minor: 10 }\n'
        "runtime_version { major: 12 minor: 9 patch: 0 }\n"
        f'device_description_str: "{name}"\n'
    )
