# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Parser of pickles of plain data: it creates no Python object per value, runs no code and imports nothing.

Plain data is what protocols 2 to 5 write for dicts, lists, tuples, texts, bytes, numbers, booleans and None. Memory is
bounded by the file's size: no length in the file is trusted before its bytes are present.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from tb_memplugin.native.torch.plain_values cimport (
    DAMAGED, FINE, GLOBAL_NAME, K_FLOAT, K_HUGE, K_LIST, K_RECORD, K_TEXT, LARGE, MAX_KEYS, MAX_TABLES, Store, TRUNCATED,
    UNKNOWN, VARIED, WIDE,
)


class NotPlain(ValueError):
    """The file is damaged or contains more than plain data; `asks_for` is the name that it imports, if that is why."""

    def __init__(self, text, asks_for=""):
        super().__init__(text)
        self.asks_for = asks_for


cdef class _Machine(Store):
    cdef Py_ssize_t size
    cdef Py_ssize_t at
    cdef vector[uint32_t] stack
    cdef vector[size_t] marks
    cdef vector[uint32_t] memo
    cdef uint64_t room      # bytes that the values may take

    cdef inline bint has(self, uint64_t count) noexcept nogil:
        return count <= <uint64_t>(self.size - self.at)

    cdef inline uint64_t number(self, int width) noexcept nogil:
        """Read a little-endian unsigned number; has(width) must be true."""
        cdef uint64_t value = 0
        memcpy(&value, self.data + self.at, width)
        self.at += width
        return value

    cdef int long_integer(self, uint64_t width) except -1 nogil:
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

    cdef int string(self, int width) except -1 nogil:
        cdef uint64_t length
        if not self.has(width):
            return TRUNCATED
        length = self.number(width)
        if not self.has(length):
            return TRUNCATED
        self.stack.push_back(self.text(self.at, length))
        self.at += length
        return FINE

    cdef int sequence(self, size_t first) except -1 nogil:
        """Replace the stack from `first` by a tuple."""
        cdef uint32_t made
        if first > self.stack.size():
            return DAMAGED
        made = self.node(K_LIST, -1)
        if first < self.stack.size():
            self.value[made] = self.intern(self.stack.data() + first, self.stack.size() - first)
        self.stack.resize(first)
        self.stack.push_back(made)
        return FINE

    cdef int put(self, uint64_t index) except -1 nogil:
        # Each memoized value takes at least one byte of the file, which bounds valid indices.
        if self.stack.empty() or index > <uint64_t>self.at:
            return DAMAGED
        if index >= self.memo.size():
            self.memo.resize(index + 1, 0)
        self.memo[index] = self.stack.back()
        return FINE

    cdef int get(self, uint64_t index) except -1 nogil:
        if index >= self.memo.size():
            return DAMAGED
        self.stack.push_back(self.memo[index])
        return FINE

    cdef int run(self) except -1 nogil:
        cdef uint8_t op
        cdef int status = FINE
        cdef size_t first
        cdef int64_t signed
        cdef uint32_t steps = 0
        while status == FINE:
            steps += 1
            # A step of a dict makes at most 256 values, so that 1,024 steps exceed the room by a few MB at most.
            if steps % 1024 == 0 and self.bytes_made() + 4 * (self.stack.capacity() + self.memo.capacity()) > self.room:
                return LARGE
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
                    status = self.set_items(self.stack[first - 1], self.stack.data() + first, self.stack.size() - first)
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
                status = self.set_items(self.stack[first - 1], self.stack.data() + first, self.stack.size() - first)
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
            elif op == 0x95:    # FRAME: only for stream readers
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
        """Return the `module.name` that the current opcode imports."""
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


class TooLarge(ValueError):
    """The values would take more memory than they may."""


def load(data, uint64_t room=0xFFFFFFFFFFFFFFFF):
    """Parse the bytes of a pickle into values of at most `room` bytes. Raises NotPlain and TooLarge."""
    cdef const uint8_t[::1] view = data
    cdef _Machine machine = _Machine()
    cdef int status = TRUNCATED
    machine.size = view.shape[0]
    machine.room = room
    if machine.size:
        machine.data = &view[0]
        with nogil:
            status = machine.run()
    if status == LARGE:
        raise TooLarge()
    if status == TRUNCATED:
        raise NotPlain(f"it ends in the middle, after {machine.size} bytes")
    if status == GLOBAL_NAME:
        name = machine.asks_for()
        raise NotPlain(f"it asks for {name}, and code is not run", name)
    if status == UNKNOWN:
        raise NotPlain(f"opcode {machine.data[machine.at]:#04x} at byte {machine.at} is none of plain data")
    if status == WIDE:
        raise NotPlain(f"a dict has more than {MAX_KEYS} keys, at byte {machine.at}")
    if status == VARIED:
        raise NotPlain(f"its dicts have more than {MAX_TABLES} sets of keys, at byte {machine.at}")
    if status != FINE:
        raise NotPlain(f"it is damaged at byte {machine.at}")
    return machine.freeze(machine.stack[0])
