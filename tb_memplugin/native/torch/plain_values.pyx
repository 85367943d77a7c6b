# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Plain data as tables: dicts, lists, texts, bytes, numbers, booleans and None, without a Python object each.

Every value is a node. Dicts with the same keys in the same order are the rows of one table. Equal texts and equal
lists are stored once.
"""
from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from libcpp.pair cimport pair
from libcpp.vector cimport vector

import secrets

import numpy as np

NONE, BOOL, INT, FLOAT, TEXT, LIST, RECORD, HUGE = range(8)


cdef class Store:
    """Collects values one by one; `freeze` returns them as Plain."""

    def __cinit__(self):
        cdef int i
        self.salt = secrets.randbits(64)
        self.node(K_NONE, 0)
        self.node(K_BOOL, 0)
        self.node(K_BOOL, 1)
        for i in range(SMALL_INTS):
            self.node(K_INT, i)
        self.slots.resize(1024, 0)

    cdef uint64_t bytes_made(self) noexcept nogil:
        """Return the bytes that the values take."""
        return (
            self.kind.capacity() + 8 * (self.value.capacity() + self.text_start.capacity() * 2)
            + 64 * (self.texts.size() + self.last.size())
            + sizeof(Chunk) * self.chunks.capacity() + 4 * (self.items.capacity() + self.slots.capacity())
            + self.in_tables
        )

    cdef uint32_t node(self, uint8_t kind, int64_t value) except? 0xFFFFFFFF nogil:
        self.kind.push_back(kind)
        self.value.push_back(value)
        return <uint32_t>(self.kind.size() - 1)

    cdef uint32_t integer(self, int64_t value) except? 0xFFFFFFFF nogil:
        if 0 <= value < SMALL_INTS:
            return <uint32_t>(FIRST_INT + value)
        return self.node(K_INT, value)

    cdef uint32_t text(self, Py_ssize_t start, Py_ssize_t length) except? 0xFFFFFFFF nogil:
        cdef string_view key = string_view(<const char*>self.data + start, length)
        cdef pair[string_view, uint32_t] entry
        found = self.texts.find(key)
        if found != self.texts.end():
            return dereference(found).second
        cdef uint32_t made = self.node(K_TEXT, self.text_start.size())
        self.text_start.push_back(start)
        self.text_length.push_back(length)
        entry.first, entry.second = key, made
        self.texts.insert(entry)
        return made

    cdef int32_t chunk(self, const uint32_t* found, size_t count, uint64_t hash) except -2 nogil:
        cdef Chunk made
        made.start = self.items.size()
        made.count = <uint32_t>count
        made.next = -1
        made.hash = hash
        self.items.insert(self.items.end(), found, found + count)
        self.chunks.push_back(made)
        return <int32_t>(self.chunks.size() - 1)

    cdef int32_t intern(self, const uint32_t* found, size_t count) except -2 nogil:
        """Return the chunk of these items, shared by equal lists."""
        cdef uint64_t hash = self.salt
        cdef size_t i, mask = self.slots.size() - 1, slot
        cdef int32_t known
        for i in range(count):
            hash = (hash ^ found[i]) * 0x9E3779B97F4A7C15ULL
            hash ^= hash >> 32
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

    cdef int rehash(self) except -1 nogil:
        cdef vector[uint32_t] grown
        cdef size_t i, slot, mask = self.slots.size() * 2 - 1
        grown.resize(mask + 1, 0)
        for i in range(self.slots.size()):
            if self.slots[i]:
                slot = self.chunks[self.slots[i] - 1].hash & mask
                while grown[slot]:
                    slot = (slot + 1) & mask
                grown[slot] = self.slots[i]
        self.slots.swap(grown)
        return 0

    cdef int extend(self, uint32_t list_node, const uint32_t* found, size_t count) except -1 nogil:
        """Append items to a list. Its first items are interned; later ones go to chunks of its own."""
        cdef int32_t head, tail
        cdef pair[int32_t, int32_t] entry
        if count == 0:
            return 0
        head = <int32_t>self.value[list_node]
        if head < 0:
            tail = self.intern(found, count)
            self.value[list_node] = tail
            return 0
        if self.last.find(head) == self.last.end():
            # Another list may share this chunk, so its items are copied.
            self.scratch.assign(self.items.begin() + self.chunks[head].start,
                                self.items.begin() + self.chunks[head].start + self.chunks[head].count)
            head = self.chunk(self.scratch.data(), self.scratch.size(), 0)
            self.value[list_node] = head
            entry.first = entry.second = head
            self.last.insert(entry)
        own = self.last.find(head)
        tail = dereference(own).second
        if self.chunks[tail].start + self.chunks[tail].count == <int64_t>self.items.size():
            self.items.insert(self.items.end(), found, found + count)
            self.chunks[tail].count += <uint32_t>count
            return 0
        head = self.chunk(found, count, 0)
        self.chunks[tail].next = head
        dereference(own).second = head
        return 0

    cdef int set_items(self, uint32_t record, const uint32_t* pairs, size_t count) except -1 nogil:
        """Add alternating keys and values to a dict; return a status."""
        cdef size_t i, known = 0
        cdef int32_t keys, table, old_table
        cdef int64_t row, old_row
        cdef vector[uint32_t] names
        cdef vector[uint32_t] values
        cdef pair[int32_t, int32_t] entry
        if count % 2 or self.kind[record] != K_RECORD:
            return DAMAGED
        if self.value[record] >= 0:    # it has items already
            old_table, old_row = <int32_t>(self.value[record] >> 40), self.value[record] & ((<int64_t>1 << 40) - 1)
            known = self.tables[old_table].size()
            keys = self.keys_of[old_table]
            for i in range(known):
                names.push_back(self.items[self.chunks[keys].start + i])
                values.push_back(self.tables[old_table][i][old_row])
            # A dict that gets its items one by one would leave a row in the table of every stage.
            if old_row + 1 == <int64_t>self.tables[old_table][0].size():
                for i in range(known):
                    self.tables[old_table][i].pop_back()
                self.in_tables -= 8 * known
            self.value[record] = -1
        for i in range(0, count, 2):
            names.push_back(pairs[i])
            values.push_back(pairs[i + 1])
        if names.size() == 0:
            return FINE
        if names.size() > MAX_KEYS:
            return WIDE
        keys = self.intern(names.data(), names.size())
        found = self.table_of.find(keys)
        if found != self.table_of.end():
            table = dereference(found).second
        elif self.tables.size() == MAX_TABLES:
            return VARIED
        else:
            table = <int32_t>self.tables.size()
            entry.first, entry.second = keys, table
            self.table_of.insert(entry)
            self.tables.resize(table + 1)
            self.tables.back().resize(names.size())
            self.keys_of.push_back(keys)
            self.in_tables += 64 * names.size()
        row = self.tables[table][0].size()
        self.in_tables += 8 * values.size()    # vectors grow to at most twice their size
        for i in range(values.size()):
            self.tables[table][i].push_back(values[i])
        self.value[record] = (<int64_t>table << 40) | row
        return FINE

    cdef freeze(self, uint32_t root):
        """Return all values as Plain, with `root` as the outermost one, and empty the store."""
        cdef Plain plain = Plain.__new__(Plain)
        cdef size_t t, k
        plain.nbytes = self.bytes_made()
        plain.root = root
        plain.kind = _bytes(self.kind)
        self.kind = vector[uint8_t]()
        plain.value = _longs(self.value)
        self.value = vector[int64_t]()
        plain.text_start, plain.text_length = _longs(self.text_start), _longs(self.text_length)
        plain.chunks.swap(self.chunks)
        plain.items_.swap(self.items)
        plain.tables = []
        for t in range(self.tables.size()):
            columns = np.empty((self.tables[t].size(), self.tables[t][0].size()), dtype=np.uint32)
            for k in range(self.tables[t].size()):
                _fill(columns[k], self.tables[t][k])
                self.tables[t][k] = vector[uint32_t]()
            keys = plain.chunks[self.keys_of[t]]
            plain.tables.append((np.array([plain.items_[keys.start + k] for k in range(keys.count)], np.uint32), columns))
        return plain


cdef class Plain:
    """The values of a pickle. `kind` (uint8) and `value` (int64) have an entry per node; `root` is the outermost node.

    `text_start`, `text_length`: position of each string in the file. `tables`: a pair (keys: nodes; columns: uint32
    nodes, keys x rows) for each set of dict keys. `nbytes`: the memory that the values take.
    """
    cdef readonly object kind, value, text_start, text_length, tables
    cdef readonly uint32_t root
    cdef readonly uint64_t nbytes
    cdef vector[Chunk] chunks
    cdef vector[uint32_t] items_

    def items(self, uint32_t node):
        """Return the nodes of a list or tuple, as uint32."""
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

    def count(self, uint32_t node):
        """Return the number of items of a list or tuple."""
        cdef int32_t chunk = <int32_t>self.value[node]
        cdef int64_t count = 0
        while chunk >= 0:
            count += self.chunks[chunk].count
            chunk = self.chunks[chunk].next
        return count

    def flat_count(self, const int32_t[::1] chunks):
        """Return the number of nodes that `flat` returns."""
        cdef Py_ssize_t i
        cdef int64_t count = 0
        for i in range(chunks.shape[0]):
            if chunks[i] >= 0:
                count += self.chunks[chunks[i]].count
        return count

    def flat(self, const int32_t[::1] chunks):
        """Return (offsets int64, nodes uint32): the concatenated items of several lists, by their values; -1 has none.

        Only the first chunk of longer lists is returned; a call stack never has more than one.
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
