"""Arrays of the values that a loop has gathered in vectors."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

ctypedef fused Cell:
    double
    int64_t
    int32_t
    uint8_t

cdef array_of(vector[Cell]& cells)
