"""Stats of selected events of an XPlane, as columns."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

import numpy as np

from tb_memplugin.native.containers cimport put
from tb_memplugin.native.hashing cimport Hash
from tb_memplugin.native.protobuf.fields cimport Item, item
from tb_memplugin.native.xplane.walk cimport (
    EVENT_STATS, IS_ABSENT, IS_DOUBLE, IS_NUMBER, IS_REFERENCE, IS_TEXT, Numbers, Stat, number_of, read_stat,
)

from tb_memplugin.native.charges import exceeded, left_of

cdef enum Type:
    AN_INTEGER
    A_REAL
    A_TEXT
    A_PRESENCE

cdef enum:
    CELL_BYTES = 48   # of an event's cell in a column, and in the readers' column
    TEXT_BYTES = 160  # of a distinct text, besides its bytes

# Types of columns, and the value of an event that lacks the stat, or has it with another type.
INTEGER, REAL, TEXT, PRESENCE = AN_INTEGER, A_REAL, A_TEXT, A_PRESENCE
MISSING = -(2**63)
DEFAULTS: dict[int, np.generic] = {INTEGER: np.int64(MISSING), REAL: np.float64("nan"), TEXT: np.int32(-1), PRESENCE: np.uint8(0)}

TYPES: dict[np.dtype[Any], int] = {default.dtype: type for type, default in DEFAULTS.items()}

cdef int64_t NO_INTEGER = DEFAULTS[INTEGER]
cdef double NO_REAL = DEFAULTS[REAL]
cdef double MAX_REAL = 4611686018427387904.0  # 2**62: a number of that size in a column of integers is none


cdef class _Cells:
    """The cells of all columns, and the distinct texts: in the events, or the id of a stat whose name is the text."""
    cdef Numbers columns
    cdef vector[Type] types
    cdef vector[char*] cells
    cdef vector[unordered_map[string_view, int32_t, Hash]] inline
    cdef vector[unordered_map[int64_t, int32_t, Hash]] referred
    cdef int64_t left    # bytes that further texts may take

    cdef bint event(self, Py_ssize_t row, const unsigned char* p, const unsigned char* end) except -1 nogil:
        """Write the stats of an event; False where it is damaged. If several are in one column, the last one counts."""
        cdef Item field
        cdef Stat stat
        cdef int column
        while p < end:
            if not item(&p, end, &field):
                return False
            if field.number != EVENT_STATS or field.at == NULL:
                continue
            if not read_stat(field.at, field.at + field.value, &stat):
                return False
            column = number_of(self.columns, stat.metadata)
            if column < 0 or stat.form == IS_ABSENT:
                continue
            if self.types[column] == AN_INTEGER:
                (<int64_t*>self.cells[column])[row] = integer(&stat)
            elif self.types[column] == A_REAL:
                (<double*>self.cells[column])[row] = real(&stat)
            elif self.types[column] == A_TEXT:
                (<int32_t*>self.cells[column])[row] = self.code(column, &stat)
            else:
                self.cells[column][row] = True
        return True

    cdef int32_t code(self, int column, const Stat* stat) except -2 nogil:
        """Return the code of a text in its column; -1 for the empty text."""
        cdef int32_t fresh = <int32_t>(self.inline[column].size() + self.referred[column].size())
        cdef string_view key
        if stat.form == IS_REFERENCE:
            if not self.referred[column].count(stat.value):
                self.left -= TEXT_BYTES
                put(self.referred[column], stat.value, fresh)
            return self.referred[column][stat.value]
        if stat.form != IS_TEXT or stat.value == 0:
            return -1
        key = string_view(<const char*>stat.at, stat.value)
        if not self.inline[column].count(key):
            self.left -= TEXT_BYTES + 2 * stat.value
            put(self.inline[column], key, fresh)
        return self.inline[column][key]

    cdef list texts(self, int column):
        found = [None] * (self.inline[column].size() + self.referred[column].size())
        for text in self.inline[column]:
            found[text.second] = text.first.data()[:text.first.size()]
        for reference in self.referred[column]:
            found[reference.second] = reference.first
        return found


cdef inline double of_bits(int64_t bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, sizeof(value))
    return value


cdef inline int64_t integer(const Stat* stat) noexcept nogil:
    cdef double value
    if stat.form == IS_NUMBER:
        return stat.value
    if stat.form != IS_DOUBLE:
        return NO_INTEGER
    value = of_bits(stat.value)
    return <int64_t>value if -MAX_REAL < value < MAX_REAL else NO_INTEGER


cdef inline double real(const Stat* stat) noexcept nogil:
    if stat.form == IS_DOUBLE:
        return of_bits(stat.value)
    return <double>stat.value if stat.form == IS_NUMBER else NO_REAL


def new_columns(Py_ssize_t rows, types: Sequence[int], used: Collection[int]) -> list[npt.NDArray[Any]]:
    """Return a column of each type, for read_stats to fill in; those not in `used` have the default in all rows.

    They are one block of memory, for which the system provides large pages: pages of 4 KB take as long as the values.
    """
    block = iter(np.empty((len(used), rows), dtype=np.int64))
    defaults = [DEFAULTS[type] for type in types]
    return [
        next(block).view(default.dtype)[:rows] if column in used else np.broadcast_to(default, rows)
        for column, default in enumerate(defaults)
    ]


def read_stats(plane: Buffer, const int64_t[::1] start, const int64_t[::1] length, ids: Mapping[int, int],
               columns: Sequence[npt.NDArray[Any]], budget: Charges | None = None) -> list[list[bytes | int]]:
    """Write the stats of the events at these spans into `columns`, one row per event; return the texts of each column.

    `ids`: {stat metadata id: column}; several ids may share one. `columns`: of new_columns, or slices of them. A column
    of texts has the code of each event's text, -1 for the empty text; `texts[column]` are the distinct ones by code, in
    order of first appearance: bytes, or the id of the stat whose name is the text. Raises ValueError where an event is
    damaged, and the error of `budget` where there is too much to read.
    """
    cdef const unsigned char[::1] view = plane
    cdef const unsigned char* base = b""
    cdef char[::1] cells
    cdef _Cells reader = _Cells()
    cdef Py_ssize_t rows = start.shape[0], row
    cdef bint fine = True
    cdef int64_t before
    used = set(ids.values())
    if budget is not None:
        budget.charge(CELL_BYTES * len(used) * rows)
    reader.left = before = left_of(budget, np.asarray(length).sum())
    reader.columns = Numbers(ids)
    reader.inline.resize(len(columns))
    reader.referred.resize(len(columns))
    reader.cells.resize(len(columns), NULL)
    for column, values in enumerate(columns):
        type = TYPES[values.dtype]
        reader.types.push_back(type)
        if len(values) != rows:
            raise ValueError(f"{len(values)} rows for {rows} events")
        if rows and column in used:
            values[:] = DEFAULTS[type]
            cells = values.view(np.int8)
            reader.cells[column] = &cells[0]
    if view.shape[0]:
        base = &view[0]
    with nogil:
        for row in range(rows):
            fine = 0 <= start[row] <= view.shape[0] and 0 <= length[row] <= view.shape[0] - start[row]
            if not fine or reader.left < 0:
                break
            fine = reader.event(row, base + start[row], base + start[row] + length[row])
            if not fine:
                break
    if reader.left < 0:
        raise exceeded(budget)
    if budget is not None:
        budget.charge(before - reader.left)
    if not fine:
        raise ValueError("an event of the plane is damaged")
    return [reader.texts(column) for column in range(<int>len(columns))]
