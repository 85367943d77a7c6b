# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Selected events of an XPlane, with selected stats, as columns."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from tb_memplugin.native.containers cimport put
from tb_memplugin.native.protobuf.fields cimport Item, item
from tb_memplugin.native.xplane.walk cimport (
    BROKEN, EVENT_DURATION_PS, EVENT_METADATA, EVENT_OFFSET_PS, EVENT_STATS, FULL, GO_ON, IS_ABSENT, IS_DOUBLE, IS_NUMBER,
    IS_REFERENCE, IS_TEXT, Numbers, Stat, Walk, padded, padded_bytes, read_stat, to_array, walked,
)

# The type of a stat's value; these numbers are returned.
ABSENT, NUMBER, DOUBLE, TEXT, REFERENCE = IS_ABSENT, IS_NUMBER, IS_DOUBLE, IS_TEXT, IS_REFERENCE


cdef enum:
    EVENT_BYTES = 160   # growing columns, their copies, and what readers make of them
    COLUMN_BYTES = 48   # the same of each stat's column
    TEXT_BYTES = 160    # of a distinct text, besides its bytes


cdef class _Chosen(Walk):
    """Collects the events of some names; each selected stat has a column."""
    cdef Numbers kinds, columns
    cdef int width
    cdef size_t room              # events to reserve space for in a column
    cdef vector[int64_t] of_line, offset, duration, kind
    cdef vector[vector[int64_t]] values
    cdef vector[vector[uint8_t]] forms
    cdef vector[unordered_map[string_view, int32_t]] texts

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef const unsigned char* q = p
        cdef int64_t metadata = 0
        cdef int kind
        # The metadata id comes first, so skipping the many other events costs one field.
        while q < end:
            if not item(&q, end, &field):
                return BROKEN
            if field.number == EVENT_METADATA and field.at == NULL:
                metadata = <int64_t>field.value
                break
        kind = self.kinds.of(metadata)
        if kind < 0:
            return GO_ON
        self.of_line.push_back(self.line)
        self.kind.push_back(kind)
        self.offset.push_back(0)
        self.duration.push_back(0)
        self.left -= EVENT_BYTES + COLUMN_BYTES * self.width
        if self.left < 0:
            return FULL
        if self.kind.size() > self.room:
            self.room = self.kind.size() + self.kind.size() // 4
        while p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == EVENT_OFFSET_PS:
                self.offset[self.offset.size() - 1] = <int64_t>field.value
            elif field.number == EVENT_DURATION_PS:
                self.duration[self.duration.size() - 1] = <int64_t>field.value
            elif field.number == EVENT_STATS and field.at != NULL:
                if not self.stat(field.at, field.at + field.value):
                    return BROKEN
        return GO_ON

    cdef int stat(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Stat stat
        cdef int column
        if not read_stat(p, end, &stat):
            return False
        column = self.columns.of(stat.metadata)
        if column >= 0 and stat.form != IS_ABSENT:
            if self.values[column].size() < self.kind.size():
                self.values[column].resize(self.room)
                self.forms[column].resize(self.room)  # IS_ABSENT
            self.values[column][self.kind.size() - 1] = (
                self.text(column, &stat) if stat.form == IS_TEXT else stat.value
            )
            self.forms[column][self.kind.size() - 1] = stat.form
        return True

    cdef int64_t text(self, int column, const Stat* stat) except -2 nogil:
        """Return the code of a text in its column; -1 for the empty text."""
        cdef string_view key = string_view(<const char*>stat.at, stat.value)
        if stat.value == 0:
            return -1
        if not self.texts[column].count(key):
            self.left -= TEXT_BYTES + 2 * stat.value
            put(self.texts[column], key, <int32_t>self.texts[column].size())
        return self.texts[column][key]


def collect(plane, kinds, columns, int width, budget=None):
    """Return the events whose metadata id is in `kinds`, with the stats whose metadata id is in `columns`.

    `kinds`: {event metadata id: kind}. `columns`: {stat metadata id: column below `width`}; several ids may share one.
    Per event, in file order: line, offset and duration in ps, and kind. Per column: the `form` (type) and `value` of
    each event; the value of a TEXT is its index in the column's `texts`, -1 for the empty text. Per line: its
    timestamp in ns, its number of events, and its name. Raises ValueError where the bytes are no plane,
    and the error of `budget` where there are too many events.
    """
    cdef _Chosen walk = _Chosen()
    walk.kinds, walk.columns, walk.width = Numbers(kinds), Numbers(columns), width
    walk.values.resize(width)
    walk.forms.resize(width)
    walk.texts.resize(width)
    lines = walked(walk, plane, None, budget)
    cdef int64_t events = walk.kind.size()
    return {
        **lines, "line": to_array(walk.of_line), "offset_ps": to_array(walk.offset),
        "duration_ps": to_array(walk.duration),
        "kind": to_array(walk.kind), "form": [padded_bytes(walk.forms[column], events) for column in range(width)],
        "value": [padded(walk.values[column], events) for column in range(width)],
        "texts": [_texts(walk.texts[column]) for column in range(width)],
    }


cdef list _texts(unordered_map[string_view, int32_t]& known):
    found = [b""] * known.size()
    for pair in known:
        found[pair.second] = pair.first.data()[:pair.first.size()]
    return found
