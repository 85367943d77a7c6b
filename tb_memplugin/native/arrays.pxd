"""Arrays of the values that a loop has gathered in vectors."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp.vector cimport vector

ctypedef fused Cell:
    double
    int64_t
    int32_t
    uint8_t

cdef array_of(vector[Cell]& cells)


cdef inline int64_t pair_of(int32_t left, int32_t right) noexcept nogil:
    """Return two numbers as one, as a key."""
    return left * (<int64_t>1 << 32) + <uint32_t>right


cdef pairs_in(vector[int64_t]& keys)
