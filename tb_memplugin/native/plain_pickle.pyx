# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""A pickle of plain data as tables: no Python object per value, no code run, no name looked up.

Plain data is dicts, lists, tuples, text, bytes, numbers, booleans and None, as protocols 2 to 5 write them. Every
value is a node; dicts with the same keys in the same order are the rows of one table; equal text and equal lists are
kept once. Memory is bounded by the size of the file: no length in it is trusted before the bytes are seen.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char*, size_t)

NONE, BOOL, INT, FLOAT, TEXT, LIST, RECORD, HUGE = range(8)

cdef enum:
    K_NONE = 0
    K_BOOL = 1
    K_INT = 2      # 64 bits; what needs the top bit unsigned is negative
    K_FLOAT = 3    # the bits of a double
    K_TEXT = 4     # number of a string
    K_LIST = 5     # number of a chunk of items, -1 for none; tuples too
    K_RECORD = 6   # table << 40 | row
    K_HUGE = 7     # an integer of more than 64 bits

cdef enum:
    MAX_KEYS = 256       # of a dict
    SMALL_INTS = 256     # have their nodes from the start, after None, False and True
    FIRST_INT = 3

cdef enum:
    FINE = 0
    TRUNCATED = 1
    GLOBAL_NAME = 2      # it asks for a class or function
    UNKNOWN = 3          # an opcode that plain data does not need
    DAMAGED = 4
    WIDE = 5             # a dict of more keys than any of ours has

cdef struct Chunk:
    int64_t start
    uint32_t count
    int32_t next         # the chunk that goes on; -1: none
    uint64_t hash


class NotPlain(ValueError):
    """The file is damaged, or holds more than plain data. `asks_for` is what it wanted imported, if that is why."""

    def __init__(self, text, asks_for=""):
        super().__init__(text)
        self.asks_for = asks_for


cdef class _Machine:
    cdef const uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t at
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
    cdef vector[uint32_t] stack
    cdef vector[size_t] marks
    cdef vector[uint32_t] memo
    cdef vector[uint32_t] scratch

    def __cinit__(self):
        cdef int i
        self.node(K_NONE, 0)
        self.node(K_BOOL, 0)
        self.node(K_BOOL, 1)
        for i in range(SMALL_INTS):
            self.node(K_INT, i)
        self.slots.resize(1024, 0)

    cdef uint32_t node(self, uint8_t kind, int64_t value) noexcept nogil:
        self.kind.push_back(kind)
        self.value.push_back(value)
        return <uint32_t>(self.kind.size() - 1)

    cdef inline uint32_t integer(self, int64_t value) noexcept nogil:
        if 0 <= value < SMALL_INTS:
            return <uint32_t>(FIRST_INT + value)
        return self.node(K_INT, value)

    cdef uint32_t text(self, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
        cdef string_view key = string_view(<const char*>self.data + start, length)
        found = self.texts.find(key)
        if found != self.texts.end():
            return self.texts[key]
        cdef uint32_t made = self.node(K_TEXT, self.text_start.size())
        self.text_start.push_back(start)
        self.text_length.push_back(length)
        self.texts[key] = made
        return made

    cdef int32_t chunk(self, const uint32_t* found, size_t count, uint64_t hash) noexcept nogil:
        cdef Chunk made
        made.start = self.items.size()
        made.count = <uint32_t>count
        made.next = -1
        made.hash = hash
        self.items.insert(self.items.end(), found, found + count)
        self.chunks.push_back(made)
        return <int32_t>(self.chunks.size() - 1)

    cdef int32_t intern(self, const uint32_t* found, size_t count) noexcept nogil:
        """The chunk of these items, shared with every equal one."""
        cdef uint64_t hash = 1469598103934665603ULL
        cdef size_t i, mask = self.slots.size() - 1, slot
        cdef int32_t known
        for i in range(count):
            hash = (hash ^ found[i]) * 1099511628211ULL
        hash ^= hash >> 29
        slot = hash & mask
        while self.slots[slot]:
            known = <int32_t>(self.slots[slot] - 1)
            if (self.chunks[known].hash == hash and self.chunks[known].count == count
                    and memcmp(&self.items[self.chunks[known].start], found, count * sizeof(uint32_t)) == 0):
                return known
            slot = (slot + 1) & mask
        known = self.chunk(found, count, hash)
        self.slots[slot] = <uint32_t>(known + 1)
        self.interned += 1
        if self.interned * 2 > self.slots.size():
            self.rehash()
        return known

    cdef void rehash(self) noexcept nogil:
        cdef vector[uint32_t] old = self.slots
        cdef size_t i, slot, mask = old.size() * 2 - 1
        self.slots.assign(old.size() * 2, 0)
        for i in range(old.size()):
            if old[i]:
                slot = self.chunks[old[i] - 1].hash & mask
                while self.slots[slot]:
                    slot = (slot + 1) & mask
                self.slots[slot] = old[i]

    cdef void extend(self, uint32_t list_node, const uint32_t* found, size_t count) noexcept nogil:
        """A list's first items are interned; one that goes on gets chunks of its own."""
        cdef int32_t head, tail
        if count == 0:
            return
        head = <int32_t>self.value[list_node]
        if head < 0:
            self.value[list_node] = self.intern(found, count)
            return
        if self.last.find(head) == self.last.end():
            # May be another list's too: its items are taken along.
            self.scratch.assign(self.items.begin() + self.chunks[head].start,
                                self.items.begin() + self.chunks[head].start + self.chunks[head].count)
            head = self.chunk(self.scratch.data(), self.scratch.size(), 0)
            self.value[list_node] = head
            self.last[head] = head
        tail = self.last[head]
        if self.chunks[tail].start + self.chunks[tail].count == <int64_t>self.items.size():
            self.items.insert(self.items.end(), found, found + count)
            self.chunks[tail].count += <uint32_t>count
            return
        self.chunks[tail].next = self.chunk(found, count, 0)
        self.last[head] = self.chunks[tail].next

    cdef int set_items(self, uint32_t record, size_t first) noexcept nogil:
        """Keys and values from `first` of the stack on into a dict."""
        cdef size_t i, known = 0
        cdef int32_t keys, table, old_table
        cdef int64_t row, old_row
        cdef vector[uint32_t] names
        cdef vector[uint32_t] values
        if (self.stack.size() - first) % 2 or self.kind[record] != K_RECORD:
            return DAMAGED
        if self.value[record] >= 0:    # it has some already
            old_table, old_row = <int32_t>(self.value[record] >> 40), self.value[record] & ((<int64_t>1 << 40) - 1)
            known = self.tables[old_table].size()
            keys = self.keys_of[old_table]
            for i in range(known):
                names.push_back(self.items[self.chunks[keys].start + i])
                values.push_back(self.tables[old_table][i][old_row])
        for i in range(first, self.stack.size(), 2):
            names.push_back(self.stack[i])
            values.push_back(self.stack[i + 1])
        if names.size() == 0:
            return FINE
        if names.size() > MAX_KEYS:
            return WIDE
        keys = self.intern(names.data(), names.size())
        if self.table_of.find(keys) == self.table_of.end():
            self.table_of[keys] = <int32_t>self.tables.size()
            self.tables.resize(self.tables.size() + 1)
            self.tables.back().resize(names.size())
            self.keys_of.push_back(keys)
        table = self.table_of[keys]
        row = self.tables[table][0].size()
        for i in range(values.size()):
            self.tables[table][i].push_back(values[i])
        self.value[record] = (<int64_t>table << 40) | row
        return FINE

    cdef inline bint has(self, uint64_t count) noexcept nogil:
        return count <= <uint64_t>(self.size - self.at)

    cdef inline uint64_t number(self, int width) noexcept nogil:
        """Little-endian and unsigned; has(width) must be true."""
        cdef uint64_t value = 0
        memcpy(&value, self.data + self.at, width)
        self.at += width
        return value

    cdef int long_integer(self, uint64_t width) noexcept nogil:
        cdef uint64_t value = 0
        cdef uint64_t i
        cdef bint negative
        cdef uint8_t fill
        if not self.has(width):
            return TRUNCATED
        negative = width > 0 and self.data[self.at + width - 1] >= 0x80
        fill = 0xFF if negative else 0
        if negative:
            value -= 1    # all ones
        memcpy(&value, self.data + self.at, min(width, 8))
        for i in range(8, width):
            if self.data[self.at + i] != fill or (negative and value < 9223372036854775808ULL):
                self.at += width
                self.stack.push_back(self.node(K_HUGE, 0))
                return FINE
        self.at += width
        self.stack.push_back(self.integer(<int64_t>value))
        return FINE

    cdef int string(self, int width) noexcept nogil:
        cdef uint64_t length
        if not self.has(width):
            return TRUNCATED
        length = self.number(width)
        if not self.has(length):
            return TRUNCATED
        self.stack.push_back(self.text(self.at, length))
        self.at += length
        return FINE

    cdef int sequence(self, size_t first) noexcept nogil:
        """A tuple of the stack from `first` on."""
        cdef uint32_t made
        if first > self.stack.size():
            return DAMAGED
        made = self.node(K_LIST, -1)
        if first < self.stack.size():
            self.value[made] = self.intern(&self.stack[first], self.stack.size() - first)
        self.stack.resize(first)
        self.stack.push_back(made)
        return FINE

    cdef int put(self, uint64_t index) noexcept nogil:
        # Each index needs at least a byte of the file to have been written before.
        if self.stack.empty() or index > <uint64_t>self.at:
            return DAMAGED
        if index >= self.memo.size():
            self.memo.resize(index + 1, 0)
        self.memo[index] = self.stack.back()
        return FINE

    cdef int get(self, uint64_t index) noexcept nogil:
        if index >= self.memo.size():
            return DAMAGED
        self.stack.push_back(self.memo[index])
        return FINE

    cdef int run(self) noexcept nogil:
        cdef uint8_t op
        cdef int status = FINE
        cdef size_t first
        cdef int64_t signed
        while status == FINE:
            if not self.has(1):
                return TRUNCATED
            op = self.data[self.at]
            self.at += 1
            if op == b".":
                return FINE if self.stack.size() == 1 else DAMAGED
            elif op == b"(":
                self.marks.push_back(self.stack.size())
            elif op == b"K":
                if not self.has(1):
                    return TRUNCATED
                self.stack.push_back(self.integer(<int64_t>self.number(1)))
            elif op == b"M":
                if not self.has(2):
                    return TRUNCATED
                self.stack.push_back(self.integer(<int64_t>self.number(2)))
            elif op == b"J":
                if not self.has(4):
                    return TRUNCATED
                signed = <int32_t>self.number(4)
                self.stack.push_back(self.integer(signed))
            elif op == 0x8A:    # LONG1
                status = TRUNCATED if not self.has(1) else self.long_integer(self.number(1))
            elif op == 0x8B:    # LONG4
                status = TRUNCATED if not self.has(4) else self.long_integer(self.number(4))
            elif op == b"G":    # big-endian
                if not self.has(8):
                    return TRUNCATED
                signed = 0
                for first in range(8):
                    signed = (signed << 8) | self.data[self.at + first]
                self.at += 8
                self.stack.push_back(self.node(K_FLOAT, signed))
            elif op == b"N":
                self.stack.push_back(0)
            elif op == 0x89:
                self.stack.push_back(1)
            elif op == 0x88:
                self.stack.push_back(2)
            elif op == 0x8C or op == b"C" or op == b"U":
                status = self.string(1)
            elif op == b"X" or op == b"B" or op == b"T":
                status = self.string(4)
            elif op == 0x8D or op == 0x8E:
                status = self.string(8)
            elif op == b"}":
                self.stack.push_back(self.node(K_RECORD, -1))
            elif op == b"]" or op == b")":
                self.stack.push_back(self.node(K_LIST, -1))
            elif op == b"t":
                if self.marks.empty():
                    return DAMAGED
                first = self.marks.back()
                self.marks.pop_back()
                status = self.sequence(first)
            elif 0x85 <= op <= 0x87:    # TUPLE1 to TUPLE3
                if self.stack.size() < <size_t>(op - 0x84):
                    return DAMAGED
                status = self.sequence(self.stack.size() - (op - 0x84))
            elif op == b"e" or op == b"u":
                if self.marks.empty() or self.marks.back() == 0 or self.marks.back() > self.stack.size():
                    return DAMAGED
                first = self.marks.back()
                self.marks.pop_back()
                if op == b"u":
                    status = self.set_items(self.stack[first - 1], first)
                elif self.kind[self.stack[first - 1]] != K_LIST:
                    return DAMAGED
                else:
                    self.extend(self.stack[first - 1], self.stack.data() + first, self.stack.size() - first)
                self.stack.resize(first)
            elif op == b"a":
                first = self.stack.size() - 1
                if self.stack.size() < 2 or self.kind[self.stack[first - 1]] != K_LIST:
                    return DAMAGED
                self.extend(self.stack[first - 1], self.stack.data() + first, 1)
                self.stack.resize(first)
            elif op == b"s":
                if self.stack.size() < 3:
                    return DAMAGED
                first = self.stack.size() - 2
                status = self.set_items(self.stack[first - 1], first)
                self.stack.resize(first)
            elif op == 0x94:    # MEMOIZE
                status = self.put(self.memo.size())
            elif op == b"q":
                status = TRUNCATED if not self.has(1) else self.put(self.number(1))
            elif op == b"r":
                status = TRUNCATED if not self.has(4) else self.put(self.number(4))
            elif op == b"h":
                status = TRUNCATED if not self.has(1) else self.get(self.number(1))
            elif op == b"j":
                status = TRUNCATED if not self.has(4) else self.get(self.number(4))
            elif op == 0x80:    # PROTO
                if not self.has(1):
                    return TRUNCATED
                self.at += 1
            elif op == 0x95:    # FRAME: a hint for readers of streams
                if not self.has(8):
                    return TRUNCATED
                self.at += 8
            elif op == b"0":
                if self.stack.empty():
                    return DAMAGED
                self.stack.pop_back()
            elif op == b"c" or op == b"i" or op == 0x93:
                self.at -= 1
                return GLOBAL_NAME
            else:
                self.at -= 1
                return UNKNOWN
        return status

    def asks_for(self):
        """`module.name` of what the opcode here wants to import."""
        cdef uint8_t op = self.data[self.at]
        if op == 0x93:
            names = [self.text_of(self.stack[i]) for i in range(max(0, <int64_t>self.stack.size() - 2), self.stack.size())]
        else:
            rest = (<const char*>self.data)[self.at + 1:min(self.size, self.at + 513)]
            names = [part.decode("utf-8", "replace") for part in rest.split(b"\n")[:2]]
        return ".".join(names)[:200]

    cdef text_of(self, uint32_t node):
        if self.kind[node] != K_TEXT:
            return "?"
        start, length = self.text_start[self.value[node]], min(self.text_length[self.value[node]], 100)
        return (<const char*>self.data)[start:start + length].decode("utf-8", "replace")


cdef class Plain:
    """The values of a pickle. `kind` uint8 and `value` int64 are a node each; `root` is the node of the whole.

    `text_start`, `text_length`: where in the file each string lies. `tables`: a pair (keys: nodes; columns: uint32
    nodes, keys x rows) for each kind of dict.
    """
    cdef readonly object kind, value, text_start, text_length, tables
    cdef readonly uint32_t root
    cdef vector[Chunk] chunks
    cdef vector[uint32_t] items_

    def items(self, uint32_t node):
        """The nodes in a list or tuple: uint32."""
        cdef int32_t chunk = <int32_t>self.value[node], first = chunk
        cdef int64_t count = 0, at = 0
        while chunk >= 0:
            count += self.chunks[chunk].count
            chunk = self.chunks[chunk].next
        found = np.empty(count, dtype=np.uint32)
        cdef uint32_t[::1] view = found
        chunk = first
        while chunk >= 0:
            if self.chunks[chunk].count:
                memcpy(&view[at], &self.items_[self.chunks[chunk].start], self.chunks[chunk].count * sizeof(uint32_t))
            at += self.chunks[chunk].count
            chunk = self.chunks[chunk].next
        return found

    def flat(self, const int32_t[::1] chunks):
        """(offsets int64, nodes uint32): the items of several lists, by their values, end to end; -1 has none.

        Lists of more than one piece, which no stack is, give their first piece.
        """
        cdef Py_ssize_t i
        cdef int64_t at
        offsets_array = np.zeros(chunks.shape[0] + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = offsets_array
        for i in range(chunks.shape[0]):
            offsets[i + 1] = offsets[i] + (self.chunks[chunks[i]].count if chunks[i] >= 0 else 0)
        nodes_array = np.empty(offsets[chunks.shape[0]], dtype=np.uint32)
        cdef uint32_t[::1] nodes = nodes_array
        for i in range(chunks.shape[0]):
            at = offsets[i]
            if offsets[i + 1] > at:
                memcpy(&nodes[at], &self.items_[self.chunks[chunks[i]].start], (offsets[i + 1] - at) * sizeof(uint32_t))
        return offsets_array, nodes_array


def load(data):
    """Plain data from the bytes of a pickle. Raises NotPlain."""
    cdef const uint8_t[::1] view = data
    cdef _Machine machine = _Machine()
    cdef int status = TRUNCATED
    cdef size_t t, k
    machine.size = view.shape[0]
    if machine.size:
        machine.data = &view[0]
        with nogil:
            status = machine.run()
    if status == TRUNCATED:
        raise NotPlain(f"it ends in the middle, after {machine.size} bytes")
    if status == GLOBAL_NAME:
        name = machine.asks_for()
        raise NotPlain(f"it asks for {name}, and code is not run", name)
    if status == UNKNOWN:
        raise NotPlain(f"opcode {machine.data[machine.at]:#04x} at byte {machine.at} is none of plain data")
    if status == WIDE:
        raise NotPlain(f"a dict has more than {MAX_KEYS} keys, at byte {machine.at}")
    if status != FINE:
        raise NotPlain(f"it is damaged at byte {machine.at}")
    cdef Plain plain = Plain.__new__(Plain)
    plain.root = machine.stack[0]
    plain.kind = _bytes(machine.kind)
    machine.kind = vector[uint8_t]()
    plain.value = _longs(machine.value)
    machine.value = vector[int64_t]()
    plain.text_start, plain.text_length = _longs(machine.text_start), _longs(machine.text_length)
    plain.chunks.swap(machine.chunks)
    plain.items_.swap(machine.items)
    plain.tables = []
    for t in range(machine.tables.size()):
        columns = np.empty((machine.tables[t].size(), machine.tables[t][0].size()), dtype=np.uint32)
        for k in range(machine.tables[t].size()):
            _fill(columns[k], machine.tables[t][k])
            machine.tables[t][k] = vector[uint32_t]()
        keys = plain.chunks[machine.keys_of[t]]
        plain.tables.append((np.array([plain.items_[keys.start + k] for k in range(keys.count)], np.uint32), columns))
    return plain


cdef _fill(uint32_t[::1] out, vector[uint32_t]& found):
    if found.size():
        memcpy(&out[0], found.data(), found.size() * sizeof(uint32_t))


cdef _longs(vector[int64_t]& found):
    made = np.empty(found.size(), dtype=np.int64)
    cdef int64_t[::1] view = made
    if found.size():
        memcpy(&view[0], found.data(), found.size() * sizeof(int64_t))
    return made


cdef _bytes(vector[uint8_t]& found):
    made = np.empty(found.size(), dtype=np.uint8)
    cdef uint8_t[::1] view = made
    if found.size():
        memcpy(&view[0], found.data(), found.size())
    return made
