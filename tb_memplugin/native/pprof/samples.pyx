"""Samples of a pprof profile, of which a file has millions, parsed in one pass without tables for their contents."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from tb_memplugin.native.protobuf.fields cimport Item, item, varint

from tb_memplugin.native.text.spans import Spans

# Sample and Label, by field number.
cdef enum:
    SAMPLE_LOCATION_IDS = 1
    SAMPLE_VALUES = 2
    SAMPLE_LABELS = 3
    LABEL_KEY = 1
    LABEL_TEXT = 2


cdef class _Columns:
    cdef int64_t[::1] stack_start, stack_length, told
    cdef uint8_t[::1] pieces
    cdef int64_t[:, ::1] value, text
    cdef const int64_t[::1] chosen
    cdef const int32_t[::1] entry         # text code of each entry of the string table
    cdef const int32_t[::1] key

    cdef bint label(self, Py_ssize_t row, const unsigned char* p, const unsigned char* end) noexcept nogil:
        cdef Item found
        cdef uint64_t key = 0, text = 0
        cdef Py_ssize_t i
        while p < end:
            if not item(&p, end, &found):
                return False
            if found.number == LABEL_KEY and found.at == NULL:
                key = found.value
            elif found.number == LABEL_TEXT and found.at == NULL:
                text = found.value
        if key < <uint64_t>self.entry.shape[0]:
            for i in range(self.key.shape[0]):
                if self.entry[key] == self.key[i]:
                    self.text[i, row] = <int64_t>text
        return True

    cdef void take(self, Py_ssize_t row, uint64_t value) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.chosen.shape[0]):
            if self.chosen[i] == self.told[row]:
                self.value[i, row] = <int64_t>value
        self.told[row] += 1

    cdef bint sample(self, Py_ssize_t row, const unsigned char* base, const unsigned char** cursor,
                     const unsigned char* end) noexcept nogil:
        """Parse a sample; False where it is damaged, with the cursor at the damaged field."""
        cdef Item found
        cdef uint64_t value = 0
        cdef const unsigned char* p = cursor[0]
        cdef const unsigned char* inner
        cdef const unsigned char* stop
        cdef bint begun = False
        while p < end:
            cursor[0] = p
            if not item(&p, end, &found):
                return False
            if found.number == SAMPLE_LOCATION_IDS:
                if found.at == NULL or begun:
                    self.pieces[row] = True
                else:
                    self.stack_start[row] = found.at - base
                    self.stack_length[row] = <int64_t>found.value
                begun = True
            elif found.number == SAMPLE_VALUES:
                if found.at == NULL:
                    self.take(row, found.value)
                    continue
                inner = found.at
                stop = inner + found.value
                while inner < stop:
                    if not varint(&inner, stop, &value):
                        return False
                    self.take(row, value)
            elif found.number == SAMPLE_LABELS and found.at != NULL:
                if not self.label(row, found.at, found.at + found.value):
                    return False
        return True


def samples(data: Buffer, const int64_t[::1] start, const int64_t[::1] length, const int64_t[::1] chosen,
            const int32_t[::1] entry, const int32_t[::1] key) -> tuple[Spans, Bools, I64, I64, I64]:
    """Return (stack, pieces, told, values, texts) of the samples at these spans.

    `stack`: Spans of the packed location ids. `pieces`: mask of the samples whose ids are not packed in one run, and so
    have no span. `told`: number of values of each sample. `values`: a row per `chosen` value, 0 where it is missing.
    `texts`: a row per `key`, with the string-table entry of the last label of that key, else 0. `entry` maps entries of
    the string table to text codes, and a key is a text code >= 0.
    Raises ValueError with the byte offset where the bytes are no sample.
    """
    cdef const unsigned char[::1] view = data
    cdef Py_ssize_t n = start.shape[0], i
    cdef const unsigned char* base = NULL
    cdef const unsigned char* cursor = NULL
    cdef bint fine = True
    if view.shape[0]:
        base = &view[0]
    stack = Spans(np.zeros(n, np.int64), np.zeros(n, np.int64))
    pieces, told = np.zeros(n, np.uint8), np.zeros(n, np.int64)
    values, texts = np.zeros((chosen.shape[0], n), np.int64), np.zeros((key.shape[0], n), np.int64)
    cdef _Columns columns = _Columns()
    columns.stack_start, columns.stack_length = stack
    columns.pieces, columns.told, columns.value, columns.text = pieces, told, values, texts
    columns.chosen, columns.entry, columns.key = chosen, entry, key
    with nogil:
        for i in range(n):
            cursor = base + start[i]
            if not columns.sample(i, base, &cursor, base + start[i] + length[i]):
                fine = False
                break
    if not fine:
        raise ValueError(f"not a valid sample at byte {cursor - base} of {view.shape[0]}")
    return stack, pieces.astype(bool), told, values, texts
