"""Profiles in pprof's format: jax.profiler.save_device_memory_profile's, and any other that has bytes in it."""

from tb_memplugin.readers.pprof.recordings import open_pprof

__all__ = ["open_pprof"]
