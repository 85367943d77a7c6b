"""Arrays of the values that a loop has gathered in vectors."""
from libc.string cimport memcpy

import numpy as np


cdef array_of(vector[Cell]& cells):
    """Return the cells as an array, and free the vector, so that at most two copies of a column exist at a time."""
    if Cell is double:
        array = np.empty(cells.size(), dtype=np.float64)
    elif Cell is int64_t:
        array = np.empty(cells.size(), dtype=np.int64)
    elif Cell is int32_t:
        array = np.empty(cells.size(), dtype=np.int32)
    else:
        array = np.empty(cells.size(), dtype=np.uint8)
    cdef Cell[::1] view = array
    if cells.size():
        memcpy(&view[0], cells.data(), cells.size() * sizeof(Cell))
    cells.clear()
    cells.shrink_to_fit()
    return array


cdef pairs_in(vector[int64_t]& keys):
    """Return (left, right) of the pairs in keys of `pair_of`, and free the vector."""
    array = array_of[int64_t](keys)
    return (array >> 32).astype(np.int32), array.astype(np.int32)
