"""Parser of pickles of plain data: it creates no Python object per value, runs no code and imports nothing.

Plain data is what protocols 2 to 5 write for dicts, lists, tuples, texts, bytes, numbers, booleans and None. Memory is
bounded by the file's size: no length in the file is trusted before its bytes are present.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from libcpp.vector cimport vector

from tb_memplugin.native.torch.plain_values cimport (
    DAMAGED, FINE, GLOBAL_NAME, HUGE_INTEGER, K_BOOL, K_FLOAT, K_INT, K_LIST, K_LONG, K_TEXT, KIND_BITS, KIND_MASK,
    LARGE, MAX_KEYS, MAX_TABLES, Store, TRUNCATED, UNKNOWN, VARIED, WIDE, mixed, word,
)
from tb_memplugin.native.torch.plain_values import Plain


class NotPlain(ValueError):
    """The file is damaged or contains more than plain data; if it imports something, `asks_for` is the name."""

    asks_for: str

    def __init__(self, text: str, asks_for: str = "") -> None:
        super().__init__(text)
        self.asks_for = asks_for


cdef enum:
    MAX_SMALL = 1 << 28     # of integers within a word
    LEAST_STACK = 1024
    CHECKED_BYTES = 1024    # after so many bytes of the file, the memory is checked
    SEEN_LISTS = 4096       # a power of two
    LONG_SPAN = 256
    LEAST_SPAN = 16

# The bytes in the file of a list that consists of references to memoized values only.
cdef struct SeenList:
    int64_t start
    int64_t length
    uint32_t tag
    uint32_t memo_version
    int32_t chunk


cdef inline int read(const uint8_t* data, Py_ssize_t* at, Py_ssize_t size, int width, uint64_t* number) noexcept nogil:
    """Read a little-endian unsigned number; return a status."""
    if size - at[0] < width:
        return TRUNCATED
    number[0] = 0
    memcpy(number, data + at[0], width)
    at[0] += width
    return FINE


cdef class _Machine(Store):
    cdef Py_ssize_t size
    cdef Py_ssize_t at              # where the machine stopped
    cdef size_t depth               # of the stack
    cdef vector[uint32_t] stack
    cdef vector[size_t] marks
    cdef vector[uint32_t] memo
    cdef uint32_t memo_version      # changes with each value that is replaced
    cdef vector[SeenList] seen      # stacks: most are in the file many times, as equal bytes
    cdef uint64_t room              # limit of the values' bytes

    cdef uint64_t sample(self, Py_ssize_t at, Py_ssize_t span) noexcept nogil:
        """Return a hash of the first, the middle and the last of `span` bytes."""
        cdef uint64_t hash = self.salt, value = 0
        cdef Py_ssize_t place
        for place in range(3):
            memcpy(&value, self.data + at + place * (span - 8) // 2, 8)
            hash = mixed(hash, value)
        return hash

    cdef int64_t repeat(self, Py_ssize_t at, uint32_t empty_list) noexcept nogil:
        """Fill a list from an earlier one with the bytes that follow; return their number, 0 where there is none."""
        cdef Py_ssize_t span = LONG_SPAN
        cdef uint64_t hash
        cdef SeenList* known
        while span >= LEAST_SPAN:
            if span <= self.size - at:
                hash = self.sample(at, span)
                known = &self.seen[hash & (SEEN_LISTS - 1)]
                if (known.tag == hash >> 32 and known.memo_version == self.memo_version
                        and 0 < known.length <= self.size - at
                        and memcmp(self.data + at, self.data + known.start, known.length) == 0):
                    self.lists[empty_list >> KIND_BITS] = known.chunk
                    return known.length
            span //= 4
        return 0

    cdef int remember(self, Py_ssize_t start, Py_ssize_t end, int32_t chunk) noexcept nogil:
        cdef Py_ssize_t span = LONG_SPAN
        cdef uint64_t hash
        cdef SeenList* known
        while span > end - start:
            span //= 4
        if span >= LEAST_SPAN:
            hash = self.sample(start, span)
            known = &self.seen[hash & (SEEN_LISTS - 1)]
            known.start, known.length, known.chunk = start, end - start, chunk
            known.tag, known.memo_version = <uint32_t>(hash >> 32), self.memo_version
        return 0

    cdef uint32_t long_integer(self, Py_ssize_t at, uint64_t width) except? 0 nogil:
        """Return the word of a little-endian integer; its bytes must be in the file."""
        cdef const uint8_t* data = self.data + at
        cdef bint negative = width > 0 and data[width - 1] >= 0x80
        cdef uint64_t value = 0xFFFFFFFFFFFFFFFFULL if negative else 0, i
        memcpy(&value, data, min(width, 8))
        for i in range(8, width):
            if data[i] != (0xFF if negative else 0) or (negative and value < 9223372036854775808ULL):
                return HUGE_INTEGER
        return self.integer(<int64_t>value)

    cdef inline bint is_empty_list(self, uint32_t value) noexcept nogil:
        return value & KIND_MASK == K_LIST and self.lists[value >> KIND_BITS] < 0

    cdef inline uint32_t integer(self, int64_t value) except? 0 nogil:
        if -MAX_SMALL <= value < MAX_SMALL:
            return word(K_INT, <size_t>value)
        return self.bits(K_LONG, value)

    cdef int run(self) except -1 nogil:
        """Read the pickle; return a status."""
        cdef const uint8_t* data = self.data
        cdef Py_ssize_t at = 0, size = self.size, check = 0    # where the memory is checked next
        cdef Py_ssize_t marked = -1, referred = -1             # the latest mark, and the end of references from there
        cdef bint is_new
        cdef size_t depth = 0, room = self.stack.size(), first
        cdef uint8_t op = 0
        cdef int status = FINE, width
        cdef int32_t signed
        cdef uint32_t index = 0
        cdef uint64_t number = 0
        cdef uint32_t* stack = self.stack.data()
        cdef uint32_t* memo = self.memo.data()
        cdef size_t memoized = 0    # values of the memo; the vectors have more elements
        while status == FINE:
            if at >= check:
                if at >= size:
                    status = TRUNCATED
                    break
                # A byte makes at most a dict of 256 values, so these exceed the room by a few MB at most.
                if self.is_full() or self.bytes_made() + 4 * (self.stack.capacity() + self.memo.capacity()) > self.room:
                    status = LARGE
                    break
                check = min(at + CHECKED_BYTES, size)
            if depth == room:
                room *= 2
                self.stack.resize(room)
                stack = self.stack.data()
            op = data[at]
            at += 1
            if op == b"h" or op == b"j":    # GET: most of a snapshot, and both lengths are mixed, so without a branch
                at -= 1
                first = at
                while size - at >= 5 and depth < room and data[at] & 0xFD == b"h":
                    memcpy(&index, data + at + 1, 4)
                    width = data[at] >> 1 & 1    # of 4 bytes
                    index &= (0 - <uint32_t>width) | 0xFF
                    if index >= memoized:
                        break
                    stack[depth] = memo[index]
                    depth += 1
                    at += 2 + 3 * width
                    op = 0
                if op == 0:
                    if first == marked:
                        referred = at
                else:
                    at += 1
                    status = read(data, &at, size, 1 if op == b"h" else 4, &number)
                    if status == FINE and number >= memoized:
                        status = DAMAGED
                    elif status == FINE:
                        stack[depth] = memo[number]
                        depth += 1
            elif op == 0x94 or op == b"q" or op == b"r":    # MEMOIZE, PUT
                number = memoized
                if op != 0x94:
                    status = read(data, &at, size, 1 if op == b"q" else 4, &number)
                # Each memoized value takes at least one byte of the file, which bounds valid indices.
                if status == FINE and (depth == 0 or number > <uint64_t>at):
                    status = DAMAGED
                elif status == FINE:
                    if number >= self.memo.size():
                        self.memo.resize(number + number // 2 + 1024, 0)
                        memo = self.memo.data()
                    if number < memoized and memo[number] != stack[depth - 1]:
                        self.memo_version += 1
                    memo[number] = stack[depth - 1]
                    memoized = max(memoized, number + 1)
            elif op == b"(":
                if depth and self.is_empty_list(stack[depth - 1]):
                    number = self.repeat(at, stack[depth - 1])
                    if number:
                        at += number
                        continue
                self.marks.push_back(depth)
                marked = at
            elif op == b"K" or op == b"M":
                status = read(data, &at, size, 1 if op == b"K" else 2, &number)
                stack[depth] = word(K_INT, number)
                depth += 1
            elif op == b"J":
                status = read(data, &at, size, 4, &number)
                signed = <int32_t>number
                stack[depth] = self.integer(signed)
                depth += 1
            elif op == 0x8A or op == 0x8B:    # LONG1, LONG4
                status = read(data, &at, size, 1 if op == 0x8A else 4, &number)
                if status == FINE and number > <uint64_t>(size - at):
                    status = TRUNCATED
                elif status == FINE:
                    stack[depth] = self.long_integer(at, number)
                    depth += 1
                    at += number
            elif op == b"G":    # big-endian
                if size - at < 8:
                    status = TRUNCATED
                    break
                number = 0
                for width in range(8):
                    number = (number << 8) | data[at + width]
                stack[depth] = self.bits(K_FLOAT, <int64_t>number)
                depth += 1
                at += 8
            elif op == b"N":
                stack[depth] = 0
                depth += 1
            elif op == 0x88 or op == 0x89:    # True, False
                stack[depth] = word(K_BOOL, op == 0x88)
                depth += 1
            elif (op == 0x8C or op == b"C" or op == b"U" or op == b"X" or op == b"B" or op == b"T"
                    or op == 0x8D or op == 0x8E):
                width = 8 if op == 0x8D or op == 0x8E else 1 if op == 0x8C or op == b"C" or op == b"U" else 4
                status = read(data, &at, size, width, &number)
                if status == FINE and number > <uint64_t>(size - at):
                    status = TRUNCATED
                elif status == FINE:
                    stack[depth] = self.text(at, number)
                    depth += 1
                    at += number
            elif op == b"}":
                stack[depth] = self.new_record()
                depth += 1
            elif op == b"]" or op == b")":
                stack[depth] = self.new_list(stack, 0)
                depth += 1
            elif op == b"t":
                if self.marks.empty() or self.marks.back() > depth:
                    status = DAMAGED
                    break
                first = self.marks.back()
                self.marks.pop_back()
                stack[first] = self.new_list(stack + first, depth - first)
                depth = first + 1
            elif op == 0x85 or op == 0x86 or op == 0x87:    # TUPLE1 to TUPLE3
                if depth < <size_t>(op - 0x84):
                    status = DAMAGED
                    break
                first = depth - (op - 0x84)
                stack[first] = self.new_list(stack + first, depth - first)
                depth = first + 1
            elif op == b"e" or op == b"u" or op == b"a" or op == b"s":    # APPENDS, SETITEMS, APPEND, SETITEM
                if op == b"a" or op == b"s":
                    first = depth - (1 if op == b"a" else 2)
                    if depth < 2 + (op == b"s"):
                        status = DAMAGED
                        break
                else:
                    if self.marks.empty() or self.marks.back() == 0 or self.marks.back() > depth:
                        status = DAMAGED
                        break
                    first = self.marks.back()
                    self.marks.pop_back()
                if op == b"u" or op == b"s":
                    status = self.set_items(stack[first - 1], stack + first, depth - first)
                elif stack[first - 1] & KIND_MASK != K_LIST:
                    status = DAMAGED
                else:
                    is_new = op == b"e" and referred == at - 1 and self.is_empty_list(stack[first - 1])
                    self.extend(stack[first - 1], stack + first, depth - first)
                    if is_new:
                        self.remember(marked, at, self.lists[stack[first - 1] >> KIND_BITS])
                depth = first
            elif op == 0x80 or op == 0x95:    # PROTO, FRAME: only for stream readers
                status = read(data, &at, size, 1 if op == 0x80 else 8, &number)
            elif op == b"0":
                if depth == 0:
                    status = DAMAGED
                    break
                depth -= 1
            elif op == b".":
                status = FINE if depth == 1 else DAMAGED
                break
            else:
                at -= 1
                status = GLOBAL_NAME if op == b"c" or op == b"i" or op == 0x93 else UNKNOWN
        self.at, self.depth = at, depth
        return status

    def asks_for(self):
        """Return the `module.name` that the current opcode imports."""
        cdef uint8_t op = self.data[self.at]
        if op == 0x93:
            names = [self.text_of(self.stack[i]) for i in range(max(0, <int64_t>self.depth - 2), self.depth)]
        else:
            rest = (<const char*>self.data)[self.at + 1:min(self.size, self.at + 513)]
            names = [part.decode("utf-8", "replace") for part in rest.split(b"\n")[:2]]
        return ".".join(names)[:200]

    cdef text_of(self, uint32_t value):
        if value & KIND_MASK != K_TEXT:
            return "?"
        start, length = self.texts[value >> KIND_BITS].start, min(self.texts[value >> KIND_BITS].length, 100)
        return (<const char*>self.data)[start:start + length].decode("utf-8", "replace")


class TooLarge(ValueError):
    """The values would take more memory than they may."""


def load(data: Buffer, uint64_t room=0xFFFFFFFFFFFFFFFF) -> Plain:
    """Parse the bytes of a pickle into values of at most `room` bytes. Raises NotPlain and TooLarge."""
    cdef const uint8_t[::1] view = data
    cdef _Machine machine = _Machine()
    cdef int status = TRUNCATED
    machine.size = view.shape[0]
    machine.room = room
    machine.stack.resize(LEAST_STACK)
    machine.seen.resize(SEEN_LISTS)
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
