"""Plain data without a Python object per value: dicts, lists, texts, bytes, numbers, booleans and None.

Every value is a word of 32 bits: its kind, and a small number or an index. A dict has only its values; its keys are a
table, which dicts with equal keys in equal order share. Equal texts and equal lists are stored once.
"""
from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from libcpp.pair cimport pair
from libcpp.vector cimport vector

import secrets

import numpy as np

NONE, BOOL, INT, LONG, FLOAT, TEXT, LIST, RECORD = range(8)
HUGE = <uint32_t>HUGE_INTEGER

cdef enum:
    LEAST_SLOTS = 1024
    NEW_CELLS = 1 << 21    # a bound on the cells that are made between two calls of is_full


def kinds(words: Words) -> Words:
    """Return the kind of each word, or of one word."""
    return words & <int>KIND_MASK


cdef uint64_t hash_of(const uint8_t* bytes, size_t count, uint64_t salt) noexcept nogil:
    """Return the hash of bytes, in two lanes that the processor computes at the same time."""
    cdef uint64_t one = mixed(salt, count), other = ~salt, value = 0
    cdef size_t at = 0
    while at + 16 <= count:
        memcpy(&value, bytes + at, 8)
        one = mixed(one, value)
        memcpy(&value, bytes + at + 8, 8)
        other = mixed(other, value)
        at += 16
    if at + 8 <= count:
        memcpy(&value, bytes + at, 8)
        one = mixed(one, value)
        at += 8
    if at < count:
        value = 0
        memcpy(&value, bytes + at, count - at)
        other = mixed(other, value)
    return mixed(one, other)


cdef class Store:
    """Collects values one by one; `freeze` returns them as Plain."""

    def __cinit__(self):
        self.salt = secrets.randbits(64)
        self.text_slots.resize(LEAST_SLOTS, 0)
        self.chunk_slots.resize(LEAST_SLOTS, 0)

    cdef uint64_t bytes_made(self) noexcept nogil:
        """Return the bytes that the values take."""
        return (
            8 * self.longs.capacity()
            + sizeof(TextSpan) * self.texts.capacity() + sizeof(Chunk) * self.chunks.capacity()
            + 4 * (self.text_slots.capacity() + self.chunk_slots.capacity() + self.lists.capacity())
            + 4 * (self.items.capacity() + self.records.capacity() + self.cells.capacity())
            + 64 * (self.last.size() + self.keys_of.size())
        )

    cdef bint is_full(self) noexcept nogil:
        """Return whether indices may soon exceed their bits. Callers ask at least once every thousand values."""
        return (
            max(self.longs.size(), self.texts.size(), self.lists.size(), self.records.size()) > MAX_INDEX - NEW_CELLS
            or max(self.cells.size(), self.chunks.size() * 2) > NO_CELLS - NEW_CELLS
        )

    cdef uint32_t bits(self, uint8_t kind, int64_t value) except? 0 nogil:
        """Return the word of 64 bits: a K_LONG or a K_FLOAT."""
        self.longs.push_back(value)
        return word(kind, self.longs.size() - 1)

    cdef uint32_t text(self, Py_ssize_t start, Py_ssize_t length) except? 0 nogil:
        cdef uint64_t hash = hash_of(self.data + start, length, self.salt)
        cdef size_t mask = self.text_slots.size() - 1, slot = hash & mask, i
        cdef TextSpan known
        cdef vector[uint32_t] grown
        while self.text_slots[slot]:
            known = self.texts[self.text_slots[slot] - 1]
            if (known.hash == hash and known.length == length
                    and memcmp(self.data + known.start, self.data + start, length) == 0):
                return word(K_TEXT, self.text_slots[slot] - 1)
            slot = (slot + 1) & mask
        known.start, known.length, known.hash = start, length, hash
        self.texts.push_back(known)
        self.text_slots[slot] = <uint32_t>self.texts.size()
        if self.texts.size() * 2 > mask:
            mask = mask * 2 + 1
            grown.resize(mask + 1, 0)
            for i in range(self.texts.size()):
                slot = self.texts[i].hash & mask
                while grown[slot]:
                    slot = (slot + 1) & mask
                grown[slot] = <uint32_t>(i + 1)
            self.text_slots.swap(grown)
        return word(K_TEXT, self.texts.size() - 1)

    cdef uint32_t new_list(self, const uint32_t* found, size_t count) except? 0 nogil:
        self.lists.push_back(self.intern(found, count) if count else -1)
        return word(K_LIST, self.lists.size() - 1)

    cdef uint32_t new_record(self) except? 0 nogil:
        self.records.push_back(NO_CELLS)
        return word(K_RECORD, self.records.size() - 1)

    cdef int32_t chunk(self, const uint32_t* found, size_t count, uint64_t hash) except -2 nogil:
        cdef Chunk made
        made.start, made.count, made.next, made.hash = self.items.size(), <uint32_t>count, -1, hash
        self.items.insert(self.items.end(), found, found + count)
        self.chunks.push_back(made)
        return <int32_t>(self.chunks.size() - 1)

    cdef int32_t intern(self, const uint32_t* found, size_t count) except -2 nogil:
        """Return the chunk of these items, shared by equal lists."""
        cdef uint64_t hash = hash_of(<const uint8_t*>found, count * sizeof(uint32_t), self.salt)
        cdef size_t mask = self.chunk_slots.size() - 1, slot = hash & mask, i
        cdef int32_t known
        cdef vector[uint32_t] grown
        while self.chunk_slots[slot]:
            known = <int32_t>(self.chunk_slots[slot] - 1)
            if (self.chunks[known].hash == hash and self.chunks[known].count == count
                    and memcmp(&self.items[self.chunks[known].start], found, count * sizeof(uint32_t)) == 0):
                return known
            slot = (slot + 1) & mask
        known = self.chunk(found, count, hash)
        self.chunk_slots[slot] = <uint32_t>(known + 1)
        self.interned += 1
        if self.interned * 2 > mask:
            mask = mask * 2 + 1
            grown.resize(mask + 1, 0)
            for i in range(self.chunk_slots.size()):
                if self.chunk_slots[i]:
                    slot = self.chunks[self.chunk_slots[i] - 1].hash & mask
                    while grown[slot]:
                        slot = (slot + 1) & mask
                    grown[slot] = self.chunk_slots[i]
            self.chunk_slots.swap(grown)
        return known

    cdef int extend(self, uint32_t list_word, const uint32_t* found, size_t count) except -1 nogil:
        """Append items to a list. Its first items are interned; later items go to chunks of its own."""
        cdef uint32_t number = list_word >> KIND_BITS
        cdef int32_t head = self.lists[number], tail
        cdef pair[int32_t, int32_t] entry
        if count == 0:
            return 0
        if head < 0:
            self.lists[number] = self.intern(found, count)
            return 0
        own = self.last.find(head)
        if own == self.last.end():
            # Another list may share this chunk, so its items are copied.
            self.scratch.assign(self.items.begin() + self.chunks[head].start,
                                self.items.begin() + self.chunks[head].start + self.chunks[head].count)
            head = self.chunk(self.scratch.data(), self.scratch.size(), 0)
            self.lists[number] = head
            entry.first = entry.second = head
            own = self.last.insert(entry).first
        tail = dereference(own).second
        if self.chunks[tail].start + self.chunks[tail].count == self.items.size():
            self.items.insert(self.items.end(), found, found + count)
            self.chunks[tail].count += <uint32_t>count
            return 0
        head = self.chunk(found, count, 0)
        self.chunks[tail].next = head
        dereference(own).second = head
        return 0

    cdef int32_t table(self, const uint32_t* names, size_t count, size_t step) except -2 nogil:
        """Return the table of dicts with these keys, every `step` words; -1 where there are too many tables."""
        cdef const uint32_t* keys
        cdef size_t i
        cdef int32_t chunk
        cdef pair[int32_t, int32_t] entry
        if self.keys_of.size():    # most dicts have the keys of the one before
            chunk = self.keys_of[self.latest_table]
            if self.chunks[chunk].count == count:
                keys = &self.items[self.chunks[chunk].start]
                i = 0
                while i < count and keys[i] == names[i * step]:
                    i += 1
                if i == count:
                    return self.latest_table
        self.scratch.resize(count)
        for i in range(count):
            self.scratch[i] = names[i * step]
        chunk = self.intern(self.scratch.data(), count)
        found = self.table_of.find(chunk)
        if found != self.table_of.end():
            self.latest_table = dereference(found).second
            return self.latest_table
        if self.keys_of.size() == MAX_TABLES:
            return -1
        self.keys_of.push_back(chunk)
        self.latest_table = entry.second = <int32_t>(self.keys_of.size() - 1)
        entry.first = chunk
        self.table_of.insert(entry)
        return self.latest_table

    cdef int set_items(self, uint32_t record, const uint32_t* pairs, size_t count) except -1 nogil:
        """Add alternating keys and values to a dict; return a status."""
        cdef size_t at, i, known
        cdef int32_t table
        cdef Chunk keys
        if count % 2 or record & KIND_MASK != K_RECORD:
            return DAMAGED
        if count == 0:
            return FINE
        at = self.records[record >> KIND_BITS]
        if at != NO_CELLS:    # it has items already: make new cells for all
            keys = self.chunks[self.keys_of[self.cells[at]]]
            known = keys.count
            if known + count // 2 > MAX_KEYS:
                return WIDE
            self.names.resize(known * 2 + count)
            for i in range(known):
                self.names[2 * i], self.names[2 * i + 1] = self.items[keys.start + i], self.cells[at + 1 + i]
            memcpy(&self.names[known * 2], pairs, count * sizeof(uint32_t))
            if at + 1 + known == self.cells.size():    # reuse the cells of a dict that gets its items one by one
                self.cells.resize(at)
            pairs, count = self.names.data(), self.names.size()
        if count // 2 > MAX_KEYS:
            return WIDE
        table = self.table(pairs, count // 2, 2)
        if table < 0:
            return VARIED
        at = self.cells.size()
        self.records[record >> KIND_BITS] = <uint32_t>at
        self.cells.resize(at + 1 + count // 2)
        self.cells[at] = table
        for i in range(count // 2):
            self.cells[at + 1 + i] = pairs[2 * i + 1]
        return FINE

    cdef freeze(self, uint32_t root):
        """Return all values as Plain, with `root` as the outermost one, and empty the store."""
        cdef Plain plain = Plain.__new__(Plain)
        self.text_slots, self.chunk_slots = vector[uint32_t](), vector[uint32_t]()
        plain.nbytes = self.bytes_made()
        plain.root = root
        plain.longs.swap(self.longs)
        plain.texts.swap(self.texts)
        plain.lists.swap(self.lists)
        plain.chunks.swap(self.chunks)
        plain.items_.swap(self.items)
        plain.records.swap(self.records)
        plain.cells.swap(self.cells)
        plain.keys_of.swap(self.keys_of)
        return plain


cdef class Plain:
    """The values of a pickle, as words. `root` is the outermost one, and `nbytes` the memory of all.

    `kinds` returns the kinds of words. To a method, words of other kinds than it reads are missing values.
    """
    cdef readonly uint32_t root
    cdef readonly uint64_t nbytes
    cdef vector[int64_t] longs
    cdef vector[TextSpan] texts
    cdef vector[int32_t] lists, keys_of
    cdef vector[Chunk] chunks
    cdef vector[uint32_t] items_, records, cells

    cdef int64_t cells_of(self, uint32_t record) noexcept nogil:
        """Return where the cells of a dict begin, -1 for an empty one and for other values."""
        cdef size_t number = record >> KIND_BITS
        if record & KIND_MASK != K_RECORD or number >= self.records.size() or self.records[number] == NO_CELLS:
            return -1
        return self.records[number]

    cdef int32_t chunk_of(self, uint32_t value) noexcept nogil:
        """Return the first chunk of a list, -1 for an empty one and for other values."""
        cdef size_t number = value >> KIND_BITS
        return self.lists[number] if value & KIND_MASK == K_LIST and number < self.lists.size() else -1

    def integers(self, const uint32_t[::1] words, int64_t missing) -> I64:
        """Return integers and booleans as int64. Integers of more than 64 bits are missing."""
        cdef Py_ssize_t i, n = words.shape[0]
        found = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] view = found
        cdef uint32_t kind, value
        with nogil:
            for i in range(n):
                value, kind = words[i], words[i] & KIND_MASK
                if kind == K_INT or kind == K_BOOL:
                    view[i] = <int32_t>value >> KIND_BITS
                elif kind == K_LONG and value >> KIND_BITS < self.longs.size():
                    view[i] = self.longs[value >> KIND_BITS]
                else:
                    view[i] = missing
        return found

    def float_of(self, uint32_t value) -> int:
        """Return the bits of a float as an integer; 0 for other values."""
        cdef size_t number = value >> KIND_BITS
        return self.longs[number] if value & KIND_MASK == K_FLOAT and number < self.longs.size() else 0

    def keys(self) -> U32:
        """Return the keys of all dicts; a key is repeated for each set of keys that contains it."""
        return np.concatenate([np.empty(0, np.uint32), *(self.chunk_items(chunk) for chunk in self.keys_of)])

    def pairs(self, uint32_t record) -> tuple[U32, U32]:
        """Return (keys, values) of a dict."""
        cdef int64_t at = self.cells_of(record), i
        if at < 0:
            return np.empty(0, np.uint32), np.empty(0, np.uint32)
        keys = self.chunk_items(self.keys_of[self.cells[at]])
        return keys, np.array([self.cells[at + 1 + i] for i in range(len(keys))], np.uint32)

    def column(self, const uint32_t[::1] records, uint32_t key) -> U32:
        """Return the value of a key in each of the dicts, NONE where it is missing."""
        cdef Py_ssize_t i, n = records.shape[0], t
        cdef vector[uint32_t] cell    # of the key in each table, counted from the dict's first cell; 0 has none
        cdef Chunk keys
        cdef int64_t at
        found = np.zeros(n, dtype=np.uint32)
        cdef uint32_t[::1] view = found
        with nogil:
            cell.resize(self.keys_of.size(), 0)
            for t in range(<Py_ssize_t>self.keys_of.size()):
                keys = self.chunks[self.keys_of[t]]
                for i in range(keys.count):
                    if self.items_[keys.start + i] == key:
                        cell[t] = <uint32_t>(i + 1)
            for i in range(n):
                at = self.cells_of(records[i])
                if at >= 0 and cell[self.cells[at]]:
                    view[i] = self.cells[at + cell[self.cells[at]]]
        return found

    def text_numbers(self, const uint32_t[::1] words) -> I64:
        """Return the number of each text, in the order of the file; -1 for other values."""
        cdef Py_ssize_t i, n = words.shape[0]
        found = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] view = found
        with nogil:
            for i in range(n):
                view[i] = <int64_t>(words[i] >> KIND_BITS) if words[i] & KIND_MASK == K_TEXT else -1
        return found

    def text_spans(self, const int64_t[::1] numbers) -> tuple[I64, I64]:
        """Return (start, length) of texts in the file, by their numbers."""
        cdef Py_ssize_t i, n = numbers.shape[0]
        found = np.zeros((2, n), dtype=np.int64)
        cdef int64_t[:, ::1] view = found
        for i in range(n):
            if 0 <= numbers[i] < <int64_t>self.texts.size():
                view[0, i], view[1, i] = self.texts[numbers[i]].start, self.texts[numbers[i]].length
        return found[0], found[1]

    def list_numbers(self, const uint32_t[::1] words) -> I64:
        """Return the number of each list's items, equal for equal short lists; -1 for none and for other values."""
        cdef Py_ssize_t i, n = words.shape[0]
        found = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] view = found
        with nogil:
            for i in range(n):
                view[i] = self.chunk_of(words[i])
        return found

    def items(self, uint32_t value) -> U32:
        """Return the items of a list or tuple."""
        return self.chunk_items(self.chunk_of(value))

    cdef chunk_items(self, int32_t first):
        cdef int64_t count = self.chunk_count(first), at = 0
        found = np.empty(count, dtype=np.uint32)
        cdef uint32_t[::1] view = found
        while first >= 0:
            if self.chunks[first].count:
                memcpy(&view[at], &self.items_[self.chunks[first].start], self.chunks[first].count * sizeof(uint32_t))
            at += self.chunks[first].count
            first = self.chunks[first].next
        return found

    def count(self, uint32_t value) -> int:
        """Return the number of items of a list or tuple."""
        return self.chunk_count(self.chunk_of(value))

    cdef int64_t chunk_count(self, int32_t first) noexcept nogil:
        cdef int64_t count = 0
        while first >= 0:
            count += self.chunks[first].count
            first = self.chunks[first].next
        return count

    def flat_count(self, const int64_t[::1] numbers) -> int:
        """Return the number of words that `flat` returns."""
        cdef Py_ssize_t i
        cdef int64_t count = 0
        with nogil:
            for i in range(numbers.shape[0]):
                if 0 <= numbers[i] < <int64_t>self.chunks.size():
                    count += self.chunks[numbers[i]].count
        return count

    def flat(self, const int64_t[::1] numbers) -> tuple[I64, U32]:
        """Return (lengths int64, words uint32): the concatenated items of several lists, by their numbers; -1 has none.

        Only the first chunk of longer lists is returned; a call stack never has more than one.
        """
        cdef Py_ssize_t i, n = numbers.shape[0]
        cdef int64_t at = 0, count
        lengths = np.zeros(n, dtype=np.int64)
        words = np.empty(self.flat_count(numbers), dtype=np.uint32)
        cdef int64_t[::1] of_list = lengths
        cdef uint32_t[::1] view = words
        with nogil:
            for i in range(n):
                if not 0 <= numbers[i] < <int64_t>self.chunks.size():
                    continue
                count = of_list[i] = self.chunks[numbers[i]].count
                if count:
                    memcpy(&view[at], &self.items_[self.chunks[numbers[i]].start], count * sizeof(uint32_t))
                at += count
        return lengths, words
