# cython: language_level=3
"""Hashes for tables of keys that come from a file."""
from libc.stdint cimport uint64_t


cdef inline uint64_t mixed(uint64_t key, uint64_t salt) noexcept nogil:
    """Return a hash of which all bits depend on all bits of the key: tables use some of them.

    The salt has to be unknown to whoever writes a file, so that none can make its keys collide.
    """
    cdef uint64_t value = (key ^ salt) * <uint64_t>0x9E3779B97F4A7C15
    value = (value ^ (value >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return value ^ (value >> 32)
