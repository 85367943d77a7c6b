# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Protocol buffers straight into columns: no object per message, nothing parsed that the description leaves out.

A message type becomes a table, a repeated field a table of its own whose column `parent` is the row it belongs to,
and a singular sub-message columns of its parent (`metadata.op_name`). Text stays where it is: a column of spans.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.spans import Spans

cdef enum Kind:
    SKIP = 0
    NUMBER = 1        # varint, fixed32 or fixed64, as raw 64 bits
    SPAN = 2          # start and length, in two columns
    NESTED = 3        # a singular message, flattened into this row
    NUMBERS = 4       # repeated, packed or not
    SPAN_LIST = 5
    TABLE = 6         # a repeated message

cdef struct Field:
    int kind
    int column
    int message
    int table

cdef struct TableShape:
    int first_column
    int columns       # column 0 of a table other than the root is `parent`


cdef class Plan:
    """What to read of a message type: compiled once from its descriptor."""
    cdef vector[vector[Field]] messages
    cdef vector[TableShape] tables
    cdef int n_columns
    cdef list paths
    cdef list names

    def __init__(self, descriptor):
        self.n_columns = 0
        self.paths = []
        self.names = []
        self._table("", descriptor)

    cdef int _column(self, str path, str name):
        self.names.append((path, name))
        self.n_columns += 1
        return self.n_columns - 1

    cdef int _table(self, str path, descriptor) except -1:
        # A table's columns must be neighbours, so its own are numbered before those of the tables below it.
        cdef TableShape shape
        cdef int table = self.tables.size()
        shape.first_column = self.n_columns
        shape.columns = 0
        self.tables.push_back(shape)
        self.paths.append(path)
        if path:
            self._column(path, "parent")
        below = []
        cdef int message = -1
        if descriptor is not None:
            message = self._message(path, "", descriptor, below)
        self.tables[table].columns = self.n_columns - shape.first_column
        for owner, number, kind, child_path, child in below:
            self._below(owner, number, kind, child_path, child)
        return table

    cdef int _message(self, str path, str prefix, descriptor, list below) except -1:
        cdef int message = self.messages.size()
        cdef Field field
        cdef vector[Field] fields
        field.kind = SKIP
        field.column = field.message = field.table = -1
        fields.resize(max(f.number for f in descriptor.fields) + 1, field)
        self.messages.push_back(fields)
        for f in descriptor.fields:
            name = prefix + f.name
            full = f"{path}.{name}" if path else name
            field.column = field.message = field.table = -1
            if f.is_repeated:
                kind = TABLE if f.message_type else SPAN_LIST if f.type == f.TYPE_BYTES else NUMBERS
                below.append((message, f.number, kind, full, f.message_type))
                continue
            if f.message_type:
                field.kind = NESTED
                field.message = self._message(path, name + ".", f.message_type, below)
            elif f.type == f.TYPE_BYTES:
                field.kind = SPAN
                field.column = self._column(path, name)
                self._column(path, name + "#length")
            else:
                field.kind = NUMBER
                field.column = self._column(path, name)
            self.messages[message][f.number] = field
        return message

    cdef int _below(self, int owner, int number, int kind, str path, descriptor) except -1:
        cdef Field field
        cdef int first = self.n_columns
        field.kind = kind
        field.message = -1
        if kind == TABLE:
            field.message = self.messages.size()
            field.table = self._table(path, descriptor)
        else:
            field.table = self._table(path, None)
            self._column(path, "value")
            if kind == SPAN_LIST:
                self._column(path, "value#length")
            self.tables[field.table].columns = self.n_columns - first
        field.column = self.tables[field.table].first_column
        self.messages[owner][number] = field
        return 0


cdef class _Scan:
    cdef const unsigned char* base
    cdef Plan plan
    cdef vector[vector[int64_t]] columns

    cdef inline int64_t new_row(self, int table, int64_t parent) noexcept nogil:
        cdef TableShape shape = self.plan.tables[table]
        cdef int i
        cdef int64_t row = self.columns[shape.first_column].size()
        self.columns[shape.first_column].push_back(parent)
        for i in range(1, shape.columns):
            self.columns[shape.first_column + i].push_back(0)
        return row

    cdef int64_t parse(self, int message, int64_t row, const unsigned char* p, const unsigned char* end) noexcept nogil:
        """0, or -1 - the offset of the first byte that is not a message."""
        cdef uint64_t tag = 0, value = 0
        cdef uint64_t number
        cdef int wire
        cdef Field field
        cdef int64_t child, failed
        cdef const unsigned char* start
        cdef const unsigned char* stop
        cdef size_t known = self.plan.messages[message].size()
        while p < end:
            start = p
            if not varint(&p, end, &tag):
                return self.broken(start)
            number = tag >> 3
            wire = tag & 7
            field.kind = SKIP
            if number < known:
                field = self.plan.messages[message][number]
            if wire == 0:
                if not varint(&p, end, &value):
                    return self.broken(start)
            elif wire == 2:
                if not varint(&p, end, &value) or value > <uint64_t>(end - p):
                    return self.broken(start)
            elif wire == 1:
                if end - p < 8:
                    return self.broken(start)
                memcpy(&value, p, 8)
                p += 8
            elif wire == 5:
                if end - p < 4:
                    return self.broken(start)
                value = 0
                memcpy(&value, p, 4)
                p += 4
            else:
                return self.broken(start)
            if wire != 2:
                if field.kind == NUMBER:
                    self.columns[field.column][row] = <int64_t>value
                elif field.kind == NUMBERS:
                    child = self.new_row(field.table, row)
                    self.columns[field.column + 1][child] = <int64_t>value
                continue
            stop = p + value
            if field.kind == SPAN:
                self.columns[field.column][row] = p - self.base
                self.columns[field.column + 1][row] = <int64_t>value
            elif field.kind == SPAN_LIST:
                child = self.new_row(field.table, row)
                self.columns[field.column + 1][child] = p - self.base
                self.columns[field.column + 2][child] = <int64_t>value
            elif field.kind == NESTED:
                failed = self.parse(field.message, row, p, stop)
                if failed < 0:
                    return failed
            elif field.kind == TABLE:
                child = self.new_row(field.table, row)
                failed = self.parse(field.message, child, p, stop)
                if failed < 0:
                    return failed
            elif field.kind == NUMBERS:
                while p < stop:
                    if not varint(&p, stop, &value):
                        return self.broken(p)
                    child = self.new_row(field.table, row)
                    self.columns[field.column + 1][child] = <int64_t>value
            p = stop
        return 0

    cdef inline int64_t broken(self, const unsigned char* p) noexcept nogil:
        return -1 - (p - self.base)


cdef inline bint varint(const unsigned char** cursor, const unsigned char* end, uint64_t* value) noexcept nogil:
    cdef const unsigned char* p = cursor[0]
    cdef uint64_t result = 0
    cdef int shift = 0
    while p < end and shift < 70:
        result |= <uint64_t>(p[0] & 0x7F) << shift if shift < 64 else 0
        if not p[0] & 0x80:
            value[0] = result
            cursor[0] = p + 1
            return True
        p += 1
        shift += 7
    return False


def scan(data, Plan plan):
    """{table path: {column: int64 array, or Spans into data}}; the message itself is table "".

    A double is its 64 bits; unsigned numbers past 2**63 are negative. Raises ValueError where data is no such
    message, saying at which byte.
    """
    cdef const unsigned char[::1] view = data
    cdef _Scan state = _Scan()
    cdef int64_t failed = 0
    cdef int i
    cdef const unsigned char* first = NULL
    state.plan = plan
    state.columns.resize(plan.n_columns)
    for i in range(plan.tables[0].columns):
        state.columns[i].push_back(0)
    if view.shape[0]:
        first = &view[0]
        state.base = first
        with nogil:
            failed = state.parse(0, 0, first, first + view.shape[0])
    if failed < 0:
        raise ValueError(f"not a valid message at byte {-1 - failed} of {view.shape[0]}")
    tables = {path: {} for path in plan.paths}
    for i in range(plan.n_columns):
        path, name = plan.names[i]
        column = _array(state.columns[i])
        if name.endswith("#length"):
            name = name.removesuffix("#length")
            column = Spans(tables[path][name], column)
        tables[path][name] = column
    return tables


cdef _array(vector[int64_t]& values):
    cdef int64_t[::1] view
    array = np.empty(values.size(), dtype=np.int64)
    if values.size():
        view = array
        memcpy(&view[0], values.data(), values.size() * sizeof(int64_t))
    return array
