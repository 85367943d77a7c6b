"""Numbers of JSON texts."""
from libc.stdint cimport int64_t, uint8_t

cdef struct Number:
    double value
    int64_t integer
    bint fits                       # the integer is the value, without its fraction

cdef Py_ssize_t read_number(const uint8_t* text, Py_ssize_t at, Py_ssize_t n, Number* found) noexcept nogil
