"""Storage of plain values: words, texts, lists and dicts."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

# The kind of a value is in the low bits of its word. The other bits are a small integer, or an index.
cdef enum:
    K_NONE = 0
    K_BOOL = 1
    K_INT = 2
    K_LONG = 3     # index of an integer of 64 bits; unsigned values from 2**63 are negative
    K_FLOAT = 4    # index of the bits of a double
    K_TEXT = 5     # index of a text
    K_LIST = 6     # index of a list; also tuples
    K_RECORD = 7   # index of a dict
    KIND_BITS = 3
    KIND_MASK = 7

cdef enum:
    MAX_INDEX = 0x1FFFFFFE
    HUGE_INTEGER = 0xFFFFFFFB    # the word of integers of more than 64 bits: K_LONG, of an index that no integer has
    NO_CELLS = 0xFFFFFFFF        # of a dict without items
    MAX_KEYS = 256               # of a dict
    MAX_TABLES = 4096            # sets of keys; real snapshots have at most a hundred

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
    uint64_t start
    uint64_t hash
    uint32_t count
    int32_t next         # the next chunk of the list; -1 none

cdef struct TextSpan:
    int64_t start
    int64_t length
    uint64_t hash


cdef class Store:
    cdef const uint8_t* data                        # the file's bytes, which contain the texts
    cdef vector[int64_t] longs
    cdef vector[TextSpan] texts
    cdef vector[uint32_t] text_slots                # open addressing: 1 + number of a text, 0 free
    cdef vector[int32_t] lists                      # the first chunk of each; -1 none
    cdef vector[Chunk] chunks
    cdef vector[uint32_t] items                     # of chunks
    cdef vector[uint32_t] chunk_slots               # as text_slots, for interned chunks
    cdef size_t interned
    cdef unordered_map[int32_t, int32_t] last       # of a list of its own chunks, from its first to its last
    cdef vector[uint32_t] records                   # where the cells of each dict begin
    cdef vector[uint32_t] cells                     # of each dict: its table, then its values
    cdef vector[int32_t] keys_of                    # the chunk of keys of each table
    cdef unordered_map[int32_t, int32_t] table_of   # by the chunk of keys
    cdef int32_t latest_table                       # that a dict was put into
    cdef vector[uint32_t] scratch, names
    cdef uint64_t salt                              # of the hashes, so that a file cannot contain lists that collide

    cdef uint64_t bytes_made(self) noexcept nogil
    cdef bint is_full(self) noexcept nogil
    cdef uint32_t bits(self, uint8_t kind, int64_t value) except? 0 nogil
    cdef uint32_t text(self, Py_ssize_t start, Py_ssize_t length) except? 0 nogil
    cdef uint32_t new_list(self, const uint32_t* found, size_t count) except? 0 nogil
    cdef uint32_t new_record(self) except? 0 nogil
    cdef int extend(self, uint32_t list_word, const uint32_t* found, size_t count) except -1 nogil
    cdef int set_items(self, uint32_t record, const uint32_t* pairs, size_t count) except -1 nogil
    cdef int32_t chunk(self, const uint32_t* found, size_t count, uint64_t hash) except -2 nogil
    cdef int32_t intern(self, const uint32_t* found, size_t count) except -2 nogil
    cdef int32_t table(self, const uint32_t* names, size_t count, size_t step) except -2 nogil
    cdef freeze(self, uint32_t root)


cdef inline uint32_t word(uint32_t kind, size_t index) noexcept nogil:
    return <uint32_t>(index << KIND_BITS) | kind


cdef inline uint64_t mixed(uint64_t hash, uint64_t value) noexcept nogil:
    hash = (hash ^ value) * <uint64_t>0x9E3779B97F4A7C15
    return hash ^ (hash >> 32)
