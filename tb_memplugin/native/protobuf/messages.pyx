# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Protocol buffers parsed directly into columns: no object per message, and only the fields of a plan.

A message type becomes a table. A repeated field becomes a table of its own, whose column `parent` is the row that it
belongs to; a singular sub-message becomes columns of its parent (`metadata.op_name`). Texts are spans of the input.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.protobuf.fields cimport Item, item, varint

from tb_memplugin.native.charges import exceeded, left_of
from tb_memplugin.native.text.spans import Spans

cdef enum:
    # Per cell, at most: its table, which may be growing, the copy of it and the transposed copy.
    PEAK_BYTES = 32
    KEPT_BYTES = 16   # and what readers make of it

cdef enum Parsed:
    WHOLE = 0
    BROKEN = 1
    FULL = 2

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
    int column        # within its table, whose column 0 is `parent`; of a TABLE: where its rows keep their span, or 0
    int message
    int table


cdef class Plan:
    """The fields to read of a message type, compiled once from its descriptor.

    Fields with a path in `skip` are left out. Rows of the tables in `located` have a column `span`, their own bytes.
    """
    cdef vector[vector[Field]] messages
    cdef vector[int] widths    # columns of each table
    cdef list paths            # of each table
    cdef list names            # of each table: its columns' names
    cdef object skip
    cdef object located

    def __init__(self, descriptor, skip=(), located=()):
        self.skip = frozenset(skip)
        self.located = frozenset(located)
        self.paths = []
        self.names = []
        self._message(self._table(""), "", descriptor)
        for columns in self.names:
            self.widths.push_back(len(columns))

    cdef int _table(self, str path) except -1:
        self.paths.append(path)
        self.names.append(["parent"])
        return len(self.names) - 1

    cdef int _column(self, int table, str name) except -1:
        self.names[table].append(name)
        return len(self.names[table]) - 1

    cdef int _message(self, int table, str prefix, descriptor) except -1:
        cdef int message = self.messages.size()
        cdef Field field
        cdef vector[Field] fields
        field.kind = SKIP
        field.column = field.message = field.table = -1
        fields.resize(max(f.number for f in descriptor.fields) + 1, field)
        self.messages.push_back(fields)
        for f in descriptor.fields:
            name = prefix + f.name
            path = f"{self.paths[table]}.{name}" if self.paths[table] else name
            if path in self.skip:
                continue
            field.column = field.message = field.table = -1
            if f.is_repeated:
                field.table = self._table(path)
                if f.message_type:
                    field.kind = TABLE
                    if path in self.located:
                        field.column = self._column(field.table, "span")
                        self._column(field.table, "span#length")
                    else:
                        field.column = 0
                    field.message = self._message(field.table, "", f.message_type)
                else:
                    field.kind = SPAN_LIST if f.type == f.TYPE_BYTES else NUMBERS
                    self._column(field.table, "value")
                    if field.kind == SPAN_LIST:
                        self._column(field.table, "value#length")
            elif f.message_type:
                field.kind = NESTED
                field.message = self._message(table, name + ".", f.message_type)
            else:
                field.kind = SPAN if f.type == f.TYPE_BYTES else NUMBER
                field.column = self._column(table, name)
                if field.kind == SPAN:
                    self._column(table, name + "#length")
            self.messages[message][f.number] = field
        return message


cdef class _Scan:
    cdef const unsigned char* base
    cdef const unsigned char* broken      # the first byte that is no message, or NULL
    cdef Plan plan
    cdef vector[vector[int64_t]] cells    # of each table, row by row: a new row is one step
    cdef int64_t left                     # bytes that further rows may take

    cdef inline int64_t new_row(self, int table, int64_t parent) except -1 nogil:
        """Append a row and return the index of its first cell."""
        cdef int64_t row = self.cells[table].size()
        self.cells[table].resize(row + self.plan.widths[table])
        self.cells[table][row] = parent
        self.left -= PEAK_BYTES * self.plan.widths[table]
        return row

    cdef inline int64_t child(self, Field field, int table, int64_t row) except -1 nogil:
        """Append a row to the field's table, for the parent whose cells start at `row` of `table`."""
        return self.new_row(field.table, row // self.plan.widths[table])

    cdef int parse(self, int message, int table, int64_t row,
                   const unsigned char* p, const unsigned char* end) except -1 nogil:
        """Parse into the cells from `row`. Returns WHOLE, BROKEN with `broken` set, or FULL where nothing is left."""
        cdef uint64_t value = 0
        cdef Item found
        cdef Field field
        cdef int64_t child
        cdef int result
        cdef const unsigned char* start
        cdef const unsigned char* stop
        cdef size_t known = self.plan.messages[message].size()
        cdef const Field* fields = self.plan.messages[message].data()
        while p < end:
            self.broken = p
            if self.left < 0:
                return FULL
            if not item(&p, end, &found):
                return BROKEN
            field.kind = SKIP
            if found.number < known:
                field = fields[found.number]
            start = found.at
            if start == NULL:
                if field.kind == NUMBER:
                    self.cells[table][row + field.column] = <int64_t>found.value
                elif field.kind == NUMBERS:
                    child = self.child(field, table, row)
                    self.cells[field.table][child + 1] = <int64_t>found.value
                continue
            stop = start + found.value
            if field.kind == SPAN:
                self.cells[table][row + field.column] = start - self.base
                self.cells[table][row + field.column + 1] = <int64_t>found.value
            elif field.kind == SPAN_LIST:
                child = self.child(field, table, row)
                self.cells[field.table][child + 1] = start - self.base
                self.cells[field.table][child + 2] = <int64_t>found.value
            elif field.kind == NESTED:
                result = self.parse(field.message, table, row, start, stop)
                if result != WHOLE:
                    return result
            elif field.kind == TABLE:
                child = self.child(field, table, row)
                if field.column:
                    self.cells[field.table][child + field.column] = start - self.base
                    self.cells[field.table][child + field.column + 1] = <int64_t>found.value
                result = self.parse(field.message, field.table, child, start, stop)
                if result != WHOLE:
                    return result
            elif field.kind == NUMBERS:
                while start < stop:
                    self.broken = start
                    if self.left < 0:
                        return FULL
                    if not varint(&start, stop, &value):
                        return BROKEN
                    child = self.child(field, table, row)
                    self.cells[field.table][child + 1] = <int64_t>value
        return WHOLE


def scan(data, Plan plan, spans=None, budget=None):
    """Return {table path: {column: int64 array, or Spans into data}}; the messages themselves are table "".

    Parses all of `data` as one message, or one message per span of `spans`, whose index is column `parent` of table "".
    A double is returned as its 64 bits; unsigned numbers from 2**63 are negative. Raises ValueError with the byte
    offset where data is no such message. The rows are charged to `budget`, which raises its own error for too many.
    """
    cdef const unsigned char[::1] view = data
    cdef const int64_t[::1] starts = np.zeros(1, np.int64) if spans is None else np.ascontiguousarray(spans.start)
    cdef const int64_t[::1] lengths = np.full(1, len(view)) if spans is None else np.ascontiguousarray(spans.length)
    cdef _Scan state = _Scan()
    cdef int failed = WHOLE
    cdef Py_ssize_t i
    cdef int64_t row, before
    cdef const unsigned char* first = b""
    if view.shape[0]:
        first = &view[0]
    state.plan = plan
    state.base = first
    state.left = before = left_of(budget)
    state.cells.resize(plan.widths.size())
    with nogil:
        for i in range(starts.shape[0]):
            row = state.new_row(0, i)
            if lengths[i]:
                failed = state.parse(0, 0, row, first + starts[i], first + starts[i] + lengths[i])
            if state.left < 0:
                failed = FULL
            if failed != WHOLE:
                break
    if failed == FULL:
        state.cells.clear()
        raise exceeded(budget)
    if budget is not None:
        budget.charge((before - state.left) // PEAK_BYTES * KEPT_BYTES)
    if failed:
        raise ValueError(f"not a valid message at byte {state.broken - first} of {view.shape[0]}")
    return {plan.paths[t]: _columns(state.cells[t], plan.names[t]) for t in range(<int>plan.widths.size())}


cdef _columns(vector[int64_t]& cells, list names):
    cdef int64_t[::1] view
    rows = np.empty(cells.size(), dtype=np.int64)
    if cells.size():
        view = rows
        memcpy(&view[0], cells.data(), cells.size() * sizeof(int64_t))
        vector[int64_t]().swap(cells)
    columns = np.ascontiguousarray(rows.reshape(-1, len(names)).T)
    by_name = dict(zip(names, columns))
    for name in names:
        if name.endswith("#length"):
            text = name.removesuffix("#length")
            by_name[text] = Spans(by_name[text], by_name.pop(name))
    return by_name
