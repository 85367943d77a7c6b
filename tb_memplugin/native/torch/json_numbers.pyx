"""Numbers of JSON texts, and lists of nothing else."""
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tb_memplugin.native.arrays cimport array_of

cdef double TEN[23]
cdef int _power
TEN[0] = 1.0
for _power in range(1, 23):
    TEN[_power] = TEN[_power - 1] * 10.0    # exact

cdef enum:
    MAX_DEPTH = 8    # of lists


class NotNumbers(ValueError):
    """The text contains more than lists of numbers."""


cdef inline Py_ssize_t digits(
    const uint8_t* text, Py_ssize_t at, Py_ssize_t n, uint64_t* value, int* count
) noexcept nogil:
    """Read digits; return the position after them. The value has the first 18 of `count`."""
    value[0], count[0] = 0, 0
    while at < n and 48 <= text[at] <= 57:
        if count[0] < 18:
            value[0] = value[0] * 10 + (text[at] - 48)
        count[0] += count[0] < 100
        at += 1
    return at


cdef Py_ssize_t read_number(const uint8_t* text, Py_ssize_t at, Py_ssize_t n, Number* found) noexcept nogil:
    """Read a JSON number; return the place after it. Values of up to 18 digits before the point are exact to 1 ulp."""
    cdef uint64_t whole, part, power
    cdef int count, part_count, power_count
    cdef bint negative = text[at] == 45, shrinks = False
    cdef Py_ssize_t start
    at += negative
    start = at
    at = digits(text, at, n, &whole, &count)
    found.fits = 0 < count <= 18
    found.value = <double>whole
    if count == 19:    # up to 2**63 - 1, or -2**63
        part = text[start + 18] - 48
        if whole < 922337203685477580ULL or (whole == 922337203685477580ULL and part <= <uint64_t>7 + negative):
            whole = whole * 10 + part
            found.fits, found.value = True, <double>whole
    if not found.fits:
        found.value = 1e300    # beyond any time or size
    if at < n and text[at] == 46:
        at = digits(text, at + 1, n, &part, &part_count)
        found.value += <double>part / TEN[min(part_count, 18)]
    if at < n and (text[at] | 32) == 101:
        at += 1
        if at < n and (text[at] == 43 or text[at] == 45):
            shrinks = text[at] == 45
            at += 1
        at = digits(text, at, n, &power, &power_count)
        if power_count > 2 or power > 22:
            found.value = 0.0 if shrinks else 1e300
        elif shrinks:
            found.value /= TEN[power]
        else:
            found.value *= TEN[power]
        found.fits = isfinite(found.value) and found.value < 9.2e18
        if found.fits:
            whole = <uint64_t>found.value
    found.integer = <int64_t>(0 - whole) if negative else <int64_t>whole
    if negative:
        found.value = -found.value
    return at


cdef class _Lists:
    cdef vector[int64_t] values
    cdef vector[uint8_t] depth      # of each list, at its end
    cdef vector[int64_t] count      # values up to there
    cdef size_t room                # values and lists that may still be made

    cdef bint run(self, const uint8_t* text, Py_ssize_t n) except -1 nogil:
        """Return whether the text is a list of lists of numbers, or longer than the room."""
        cdef Py_ssize_t at = 0
        cdef uint8_t depth = 0, byte
        cdef bint begins = False, after = False    # after `[`; after a number or a `]`
        cdef Number found
        while at < n:
            byte = text[at]
            if byte == 32 or byte == 10 or byte == 13 or byte == 9:
                at += 1
                continue
            if depth == 0 and after:
                return False
            if 48 <= byte <= 57 or byte == 45:
                at = read_number(text, at, n, &found)
                if after or depth == 0 or not found.fits:
                    return False
                self.values.push_back(found.integer)
                begins, after = False, True
                if self.values.size() > self.room:
                    return True
                continue
            at += 1
            if byte == 91:     # [
                if after or depth == MAX_DEPTH:
                    return False
                depth += 1
                begins = True
            elif byte == 93:   # ]
                if depth == 0 or not (after or begins):
                    return False
                self.depth.push_back(depth)
                self.count.push_back(self.values.size())
                depth -= 1
                begins, after = False, True
                if self.values.size() + self.count.size() > self.room:
                    return True
            elif byte == 44 and after:    # a comma
                after = False
            else:
                return False
        return depth == 0 and after


def read_lists(data: Buffer, size_t room) -> tuple[I64, U8, I64]:
    """Return (all numbers of nested lists, depth of each list, count of numbers at its end), lists by their ends.

    Numbers lose their fraction. Raises NotNumbers, and MemoryError for more than `room` numbers and lists.
    """
    cdef const uint8_t[::1] view = data
    cdef _Lists lists = _Lists()
    cdef bint fine = False
    lists.room = room
    if view.shape[0]:
        with nogil:
            fine = lists.run(&view[0], view.shape[0])
    if not fine:
        raise NotNumbers()
    if lists.values.size() + lists.count.size() > room:
        raise MemoryError()
    return array_of[int64_t](lists.values), array_of[uint8_t](lists.depth), array_of[int64_t](lists.count)
