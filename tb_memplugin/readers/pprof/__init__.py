"""Profiles in pprof's format: from jax.profiler.save_device_memory_profile, or any other with a value in bytes."""

from tb_memplugin.readers.pprof.recordings import open_pprof

__all__ = ["open_pprof"]
