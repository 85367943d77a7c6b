# cython: language_level=3
"""Storage of plain values: nodes, texts, lists and tables of dicts."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

cdef enum:
    K_NONE = 0
    K_BOOL = 1
    K_INT = 2      # 64 bits; unsigned values from 2**63 are negative
    K_FLOAT = 3    # the bits of a double
    K_TEXT = 4     # index of a string
    K_LIST = 5     # index of a chunk of items, -1 for none; also tuples
    K_RECORD = 6   # table << 40 | row
    K_HUGE = 7     # an integer of more than 64 bits

cdef enum:
    MAX_KEYS = 256       # of a dict
    MAX_TABLES = 4096    # sets of keys; real snapshots have at most a hundred
    SMALL_INTS = 256     # preallocated nodes, after None, False and True
    FIRST_INT = 3


cdef enum:
    FINE = 0
    TRUNCATED = 1
    GLOBAL_NAME = 2      # a reference to a class or function
    UNKNOWN = 3          # an opcode outside plain data
    DAMAGED = 4
    WIDE = 5             # a dict with more than MAX_KEYS keys
    VARIED = 6           # dicts with more than MAX_TABLES sets of keys
    LARGE = 7            # more values than there is room for

cdef struct Chunk:
    int64_t start
    uint32_t count
    int32_t next         # the next chunk of the list; -1 none
    uint64_t hash


cdef class Store:
    cdef const uint8_t* data                        # the file's bytes, which contain the texts
    cdef vector[uint8_t] kind
    cdef vector[int64_t] value
    cdef vector[int64_t] text_start
    cdef vector[int64_t] text_length
    cdef unordered_map[string_view, uint32_t] texts
    cdef vector[Chunk] chunks
    cdef vector[uint32_t] items
    cdef vector[uint32_t] slots                     # open addressing: 1 + number of an interned chunk, 0 free
    cdef size_t interned
    cdef unordered_map[int32_t, int32_t] last       # of a list of its own chunks, from its first to its last
    cdef unordered_map[int32_t, int32_t] table_of   # by the chunk of keys
    cdef vector[int32_t] keys_of
    cdef vector[vector[vector[uint32_t]]] tables
    cdef vector[uint32_t] scratch
    cdef uint64_t salt                              # of the hashes, so that a file cannot contain lists that collide
    cdef uint64_t in_tables                         # bytes

    cdef uint64_t bytes_made(self) noexcept nogil
    cdef uint32_t node(self, uint8_t kind, int64_t value) except? 0xFFFFFFFF nogil
    cdef uint32_t integer(self, int64_t value) except? 0xFFFFFFFF nogil
    cdef uint32_t text(self, Py_ssize_t start, Py_ssize_t length) except? 0xFFFFFFFF nogil
    cdef int32_t chunk(self, const uint32_t* found, size_t count, uint64_t hash) except -2 nogil
    cdef int32_t intern(self, const uint32_t* found, size_t count) except -2 nogil
    cdef int rehash(self) except -1 nogil
    cdef int extend(self, uint32_t list_node, const uint32_t* found, size_t count) except -1 nogil
    cdef int set_items(self, uint32_t record, const uint32_t* pairs, size_t count) except -1 nogil
    cdef freeze(self, uint32_t root)
