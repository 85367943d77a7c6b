"""Facts about JAX arrays and devices: the line that created an array, its address, the counters of a device."""

from __future__ import annotations

import os

import jax
import jaxlib

from tb_memplugin.capture.guard import Quietly

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
    except Exception:  # each backend has its own
        return None


def is_deleted(array: jax.Array) -> bool:
    try:
        return bool(array.is_deleted())
    except Exception:
        return False


def device_count(array: jax.Array) -> int:
    """Return the number of devices that an array is on; 1 where that is unknown."""
    try:
        return len(array.sharding.device_set)
    except Exception:
        return 1


def memory_stats(device: jax.Device) -> dict[str, int] | None:
    """Return the device's memory counters, in bytes; None where it has none, as on CPU."""
    with Quietly("memory counters could not be read"):
        counters = device.memory_stats()
        # Numbers only: the counters become part of a file.
        return {name: value for name, value in (counters or {}).items() if isinstance(value, int)} or None
    return None


def bytes_limit(device: jax.Device) -> int | None:
    """Return the memory that the device's allocator may use, in bytes; None where it is unknown."""
    return (memory_stats(device) or {}).get("bytes_limit")
