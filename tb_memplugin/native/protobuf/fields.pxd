"""Iteration over the fields of a protocol buffer."""
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef struct Item:
    uint64_t number
    uint64_t value                # of a number; the length of what `at` points to otherwise
    const unsigned char* at       # NULL for a number


cdef inline bint varint(const unsigned char** cursor, const unsigned char* end, uint64_t* value) noexcept nogil:
    cdef const unsigned char* p = cursor[0]
    cdef uint64_t result = 0
    cdef int shift = 0
    if p < end and p[0] < 0x80:  # most tags and lengths
        value[0] = p[0]
        cursor[0] = p + 1
        return True
    if p + 1 < end and p[1] < 0x80:  # most others
        value[0] = (p[0] & 0x7F) | <uint64_t>p[1] << 7
        cursor[0] = p + 2
        return True
    while p < end and shift < 70:
        result |= <uint64_t>(p[0] & 0x7F) << shift if shift < 64 else 0
        if not p[0] & 0x80:
            value[0] = result
            cursor[0] = p + 1
            return True
        p += 1
        shift += 7
    return False


cdef inline bint item(const unsigned char** cursor, const unsigned char* end, Item* found) noexcept nogil:
    """Read the next field of a message, of any type; False where the bytes are no field."""
    cdef uint64_t tag = 0
    if not varint(cursor, end, &tag):
        return False
    found.number = tag >> 3
    if found.number == 0:  # no field has this number: zeros, as in a file that was not written yet, are no message
        return False
    found.at = NULL
    tag &= 7
    if tag == 0:
        return varint(cursor, end, &found.value)
    if tag == 2:
        if not varint(cursor, end, &found.value) or found.value > <uint64_t>(end - cursor[0]):
            return False
        found.at = cursor[0]
        cursor[0] += found.value
        return True
    if tag == 1 or tag == 5:
        if end - cursor[0] < (8 if tag == 1 else 4):
            return False
        found.value = 0
        memcpy(&found.value, cursor[0], 8 if tag == 1 else 4)
        cursor[0] += 8 if tag == 1 else 4
        return True
    return False
