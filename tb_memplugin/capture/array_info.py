"""Facts about JAX arrays and devices: the line that created an array, its address, the counters of a device."""

from __future__ import annotations

import os

import jax
import jaxlib

JAX_FOLDERS = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (jax, jaxlib))


def creating_line(array: jax.Array) -> str:
    """Return the line that created the array, such as `file.py:9`; empty where JAX kept no traceback."""
    traceback = getattr(array, "traceback", None)
    for frame in traceback.frames if traceback else ():
        if not frame.file_name.startswith(JAX_FOLDERS):
            # The profiler ends an event's name at a #.
            return f"{os.path.basename(frame.file_name)}:{frame.line_num}".replace("#", "_")
    return ""


def sharding_text(array: jax.Array) -> str:
    """Describe an array's sharding, such as `PartitionSpec('data',) of (8, 128)`."""
    spec = getattr(array.sharding, "spec", type(array.sharding).__name__)
    return f"{spec} of {array.shape}".replace("#", "_")


def address(array: jax.Array) -> int | None:
    """Return the address of the array's buffer; None where the backend has none."""
    try:
        return int(array.unsafe_buffer_pointer())
    except (RuntimeError, NotImplementedError, ValueError):
        return None


def memory_stats(device: jax.Device) -> dict[str, int] | None:
    """Return the device's memory counters, in bytes; None where it has none, as on CPU."""
    try:
        counters: dict[str, int] | None = device.memory_stats()
    except jax.errors.JaxRuntimeError:  # some backends raise instead of returning None
        return None
    return counters


def bytes_limit(device: jax.Device) -> int | None:
    """Return the memory that the device's allocator may use, in bytes; None where it is unknown."""
    return (memory_stats(device) or {}).get("bytes_limit")
