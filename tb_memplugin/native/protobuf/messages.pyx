"""Protocol buffers parsed directly into columns: no object per message, and only the fields of a plan.

A message type becomes a table. A repeated field becomes a table of its own, whose column `parent` has the row to which
it belongs; a singular sub-message becomes columns of its parent (`metadata.op_name`). Texts are spans of the input.
"""
from cpython.buffer cimport PyBuffer_FillInfo
from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.containers cimport put
from tb_memplugin.native.hashing cimport Hash
from tb_memplugin.native.protobuf.fields cimport Item, item, varint

from tb_memplugin.native.charges import exceeded, left_of
from tb_memplugin.native.text.spans import InternedSpans, Spans

# Types of fields, as protobuf numbers them.
BOOL, INT32, BYTES, ENUM = 8, 5, 12, 14

cdef enum:
    CELL_BYTES = 16       # of a cell at most: its column, which may be growing, and the readers' column
    TEXT_BYTES = 128      # of an entry among the distinct texts of a column
    STAGED_BYTES = 16384  # complete rows move into their columns together, while they are in the processor's cache

cdef enum Parsed:
    WHOLE = 0
    BROKEN = 1
    FULL = 2
    NO_MEMORY = 3

cdef enum Kind:
    SKIP = 0
    NUMBER = 1        # varint, fixed32 or fixed64, as raw 64 bits
    SPAN = 2          # start and length, in two columns
    NESTED = 3        # a singular message, flattened into this row
    NUMBERS = 4       # repeated, packed or not
    SPAN_LIST = 5
    TABLE = 6         # a repeated message
    INTERNED = 7      # the code of a text, plus 1

cdef struct Field:
    int kind
    int column        # within its table, whose column 0 is `parent`; of a TABLE: where its rows keep their span, or 0
    int message
    int table         # for an INTERNED text: the number of its column among the columns of interned texts

cdef struct Table:
    int width                  # cells of a row
    int64_t staged, most       # rows in `stage`, and for how many it has room
    int64_t rows, room         # the same of `columns`
    int64_t* stage             # row by row
    vector[unsigned char*] columns


cdef class Plan:
    """The fields to read of a message type, compiled once: of a Message of tb_memplugin.protos, or a Descriptor.

    Fields with a path in `skip` are left out. Rows of the tables in `located` have a column `span`, their own bytes.
    Texts in `interned` become codes, in order of first appearance; -1 for an empty one. Numbers and texts in `sparse`,
    which few messages have, become tables of their own, as repeated ones do.
    """
    cdef vector[vector[Field]] messages
    cdef vector[vector[int]] sizes  # of each table: bytes per value of each column; 0: a code of an interned text
    cdef list texts            # the table and name of each column of interned texts
    cdef list paths            # of each table
    cdef list names            # of each table: its columns' names
    cdef object skip
    cdef object located
    cdef object interned
    cdef object sparse

    def __init__(self, message: Any, skip: Collection[str] = (), located: Collection[str] = (),
                 interned: Collection[str] = (), sparse: Collection[str] = ()) -> None:
        self.skip = frozenset(skip)
        self.located = frozenset(located)
        self.interned = frozenset(interned)
        self.sparse = frozenset(sparse)
        self.paths = []
        self.names = []
        self.texts = []
        self._message(self._table(""), "", message)

    cdef int _table(self, str path) except -1:
        self.paths.append(path)
        self.names.append([])
        self.sizes.push_back(vector[int]())
        self._column(len(self.names) - 1, "parent", sizeof(int32_t))
        return len(self.names) - 1

    cdef int _column(self, int table, str name, int size=sizeof(int64_t)) except -1:
        self.names[table].append(name)
        self.sizes[table].push_back(size)
        return len(self.names[table]) - 1

    cdef int _message(self, int table, str prefix, message_type) except -1:
        cdef int message = self.messages.size()
        cdef Field field
        cdef vector[Field] fields
        field.kind = SKIP
        field.column = field.message = field.table = -1
        fields.resize(max(f.number for f in message_type.fields) + 1, field)
        self.messages.push_back(fields)
        for f in message_type.fields:
            name = prefix + f.name
            path = f"{self.paths[table]}.{name}" if self.paths[table] else name
            if path in self.skip:
                continue
            field.column = field.message = field.table = -1
            if f.is_repeated or path in self.sparse:
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
                    field.kind = SPAN_LIST if f.type == BYTES else NUMBERS
                    self._column(field.table, "value")
                    if field.kind == SPAN_LIST:
                        self._column(field.table, "value#length")
            elif f.message_type:
                field.kind = NESTED
                field.message = self._message(table, name + ".", f.message_type)
            elif path in self.interned:
                field.kind = INTERNED
                field.column = self._column(table, name, 0)
                field.table = len(self.texts)
                self.texts.append((self.paths[table], name))
            elif f.type == BYTES:
                field.kind = SPAN
                field.column = self._column(table, name)
                self._column(table, name + "#length")
            else:
                field.kind = NUMBER
                field.column = self._column(table, name, _bytes_of(f))
            self.messages[message][f.number] = field
        return message


def _bytes_of(field):
    """Return the bytes of a number in its column."""
    if field.type == BOOL:
        return sizeof(uint8_t)
    return sizeof(int32_t) if field.type in (INT32, ENUM) else sizeof(int64_t)


cdef class _Values:
    """The memory of a column, which its array uses without a copy."""
    cdef unsigned char* values
    cdef readonly Py_ssize_t nbytes

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.values, self.nbytes, 0, flags)

    def __dealloc__(self):
        free(self.values)


cdef class _Scan:
    cdef const unsigned char* base
    cdef const unsigned char* broken      # the first byte that is no message, or NULL
    cdef Plan plan
    cdef vector[Table] tables
    cdef vector[unordered_map[string_view, int32_t, Hash]] codes  # of each column of interned texts
    cdef vector[vector[int64_t]] starts, lengths            # of their distinct texts
    cdef int64_t left                     # bytes that further rows may take

    def __init__(self, Plan plan, left):
        cdef Table table
        cdef Py_ssize_t t
        self.plan = plan
        self.left = left
        self.codes.resize(len(plan.texts))
        self.starts.resize(len(plan.texts))
        self.lengths.resize(len(plan.texts))
        for t in range(<Py_ssize_t>plan.sizes.size()):
            table.width = plan.sizes[t].size()
            table.staged = table.rows = table.room = 0
            table.most = STAGED_BYTES // (table.width * sizeof(int64_t)) + 1
            table.stage = NULL
            table.columns.assign(table.width, NULL)
            self.tables.push_back(table)

    def __dealloc__(self):
        for table in self.tables:
            free(table.stage)
            for values in table.columns:
                free(values)

    cdef int64_t* new_row(self, int number, int64_t parent) noexcept nogil:
        """Append a row and return its cells; NULL if there is no memory for it."""
        cdef Table* table = &self.tables[number]
        cdef int64_t* cells
        if table.staged == table.most and not self.unstage(number):
            return NULL
        if table.stage == NULL:
            table.stage = <int64_t*>calloc(table.most * table.width, sizeof(int64_t))
            if table.stage == NULL:
                return NULL
        cells = table.stage + table.staged * table.width
        memset(cells, 0, table.width * sizeof(int64_t))
        cells[0] = parent
        table.staged += 1
        self.left -= CELL_BYTES * table.width
        return cells

    cdef inline int64_t* child(self, int number, int parent) noexcept nogil:
        """Append a row for the last row of the table `parent`, which is the one that is being parsed."""
        return self.new_row(number, self.tables[parent].rows + self.tables[parent].staged - 1)

    cdef bint unstage(self, int number) noexcept nogil:
        """Move the staged rows into their columns; False where there is no memory for them."""
        cdef Table* table = &self.tables[number]
        cdef const vector[int]* sizes = &self.plan.sizes[number]
        cdef int64_t needed = table.rows + table.staged
        cdef int c
        if needed > table.room and not self.resize(number, max(needed, 2 * table.room)):
            return False
        for c in range(table.width):
            move(table.stage + c, table.width, table.staged, dereference(sizes)[c], table.columns[c], table.rows)
        table.rows = needed
        table.staged = 0
        return True

    cdef bint resize(self, int number, int64_t room) noexcept nogil:
        cdef Table* table = &self.tables[number]
        cdef void* moved
        cdef int c, size
        for c in range(table.width):
            size = self.plan.sizes[number][c]
            moved = realloc(table.columns[c], max(room, 1) * (size if size else sizeof(int32_t)))
            if moved == NULL:
                return False
            table.columns[c] = <unsigned char*>moved
        table.room = room
        return True

    cdef int64_t code(self, int column, const unsigned char* text, uint64_t length) except -1 nogil:
        """Return the code of a text plus 1."""
        cdef string_view key = string_view(<const char*>text, length)
        cdef int32_t known
        if length == 0:
            return 0
        found = self.codes[column].find(key)
        if found != self.codes[column].end():
            return dereference(found).second + 1
        known = <int32_t>self.codes[column].size()
        put(self.codes[column], key, known)
        self.starts[column].push_back(text - self.base)
        self.lengths[column].push_back(<int64_t>length)
        self.left -= TEXT_BYTES
        return known + 1

    cdef int parse(self, int message, int table, int64_t* cells,
                   const unsigned char* p, const unsigned char* end) except -1 nogil:
        """Parse into the cells of the last row of `table`. Sets `broken` where it returns BROKEN."""
        cdef uint64_t value = 0
        cdef Item found
        cdef const Field* field
        cdef int64_t* child
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
            if found.number >= known:
                continue
            field = &fields[found.number]
            start = found.at
            if start == NULL:
                if field.kind == NUMBER:
                    cells[field.column] = <int64_t>found.value
                elif field.kind == NUMBERS:
                    child = self.child(field.table, table)
                    if child == NULL:
                        return NO_MEMORY
                    child[1] = <int64_t>found.value
                continue
            stop = start + found.value
            if field.kind == SPAN:
                cells[field.column] = start - self.base
                cells[field.column + 1] = <int64_t>found.value
            elif field.kind == INTERNED:
                cells[field.column] = self.code(field.table, start, found.value)
            elif field.kind == SPAN_LIST:
                child = self.child(field.table, table)
                if child == NULL:
                    return NO_MEMORY
                child[1] = start - self.base
                child[2] = <int64_t>found.value
            elif field.kind == NESTED:
                result = self.parse(field.message, table, cells, start, stop)
                if result != WHOLE:
                    return result
            elif field.kind == TABLE:
                child = self.child(field.table, table)
                if child == NULL:
                    return NO_MEMORY
                if field.column:
                    child[field.column] = start - self.base
                    child[field.column + 1] = <int64_t>found.value
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
                    child = self.child(field.table, table)
                    if child == NULL:
                        return NO_MEMORY
                    child[1] = <int64_t>value
        return WHOLE

    cdef columns(self, int number):
        """Return the columns of a complete table by name."""
        cdef Table* table = &self.tables[number]
        cdef list arrays = []
        cdef int c, size
        cdef _Values values
        if not self.unstage(number) or not self.resize(number, table.rows):
            raise MemoryError
        free(table.stage)
        table.stage = NULL
        for c in range(table.width):
            size = self.plan.sizes[number][c]
            values = _Values()
            values.nbytes = table.rows * (size if size else sizeof(int32_t))
            values.values = table.columns[c]
            table.columns[c] = NULL
            arrays.append(np.frombuffer(values, {1: np.uint8, 8: np.int64}.get(size, np.int32)))
        return dict(zip(self.plan.names[number], arrays))

    cdef distinct(self, int column):
        return Spans(array_of[int64_t](self.starts[column]), array_of[int64_t](self.lengths[column]))


cdef void move(const int64_t* cells, int width, int64_t count, int size, unsigned char* column,
               int64_t before) noexcept nogil:
    """Copy every `width`-th cell behind the first `before` values of a column with values of `size` bytes."""
    cdef int64_t i
    cdef int64_t* wide = <int64_t*>column + before
    cdef int32_t* half = <int32_t*>column + before
    if size == sizeof(int64_t):
        for i in range(count):
            wide[i] = cells[i * width]
    elif size == sizeof(int32_t):
        for i in range(count):
            half[i] = <int32_t>cells[i * width]
    elif size == 0:
        for i in range(count):
            half[i] = <int32_t>cells[i * width] - 1
    else:
        for i in range(count):
            column[before + i] = cells[i * width] != 0


def scan(data: Buffer, Plan plan, spans: Spans | None = None,
         budget: Charges | None = None) -> dict[str, dict[str, Any]]:
    """Return {table path: {column: array, or Spans into data}}; the messages themselves are table "".

    Parses all of `data` as one message, or one message per span of `spans`, whose index is column `parent` of table "".
    Numbers have the width of their type; a double is returned as its 64 bits, unsigned numbers from 2**63 are negative.
    Raises ValueError with the byte offset where data is no such message. The rows are charged to `budget`, which raises
    its own error for too many.
    """
    cdef const unsigned char[::1] view = data
    cdef const int64_t[::1] starts = np.zeros(1, np.int64) if spans is None else np.ascontiguousarray(spans.start)
    cdef const int64_t[::1] lengths = np.full(1, len(view)) if spans is None else np.ascontiguousarray(spans.length)
    cdef _Scan state = _Scan(plan, left_of(budget, np.asarray(lengths).sum()))
    cdef int64_t before = state.left
    cdef int failed = WHOLE
    cdef Py_ssize_t i
    cdef int64_t* cells
    cdef const unsigned char* first = b""
    if view.shape[0]:
        first = &view[0]
    state.base = first
    with nogil:
        for i in range(starts.shape[0]):
            cells = state.new_row(0, i)
            if cells == NULL:
                failed = NO_MEMORY
            elif lengths[i]:
                failed = state.parse(0, 0, cells, first + starts[i], first + starts[i] + lengths[i])
            if state.left < 0:
                failed = FULL
            if failed != WHOLE:
                break
    if failed == NO_MEMORY:
        raise MemoryError
    if failed == FULL:
        raise exceeded(budget)
    if budget is not None:
        budget.charge(before - state.left)
    if failed:
        raise ValueError(f"not a valid message at byte {state.broken - first} of {view.shape[0]}")
    return _tables(state)


cdef _tables(_Scan state):
    cdef int t
    tables = {}
    for t in range(<int>state.tables.size()):
        tables[state.plan.paths[t]] = table = state.columns(t)
        for name in state.plan.names[t]:
            if name.endswith("#length"):
                text = name.removesuffix("#length")
                table[text] = Spans(table[text], table.pop(name))
    for t, (path, name) in enumerate(state.plan.texts):
        tables[path][name] = InternedSpans(tables[path][name], state.distinct(t))
    return tables
