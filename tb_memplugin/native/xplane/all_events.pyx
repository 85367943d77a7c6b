"""All events of an XPlane as columns."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.protobuf.fields cimport Item, item
from tb_memplugin.native.xplane.walk cimport (
    BROKEN, EVENT_DURATION_PS, EVENT_METADATA, EVENT_OFFSET_PS, EVENT_STATS, FULL, GO_ON, IS_NUMBER, IS_REFERENCE,
    Numbers, Stat, Walk, number_of, read_stat, walked,
)


cdef enum:
    # Per event and per stat: growing columns, their copies, and the readers' columns.
    EVENT_BYTES = 160
    STAT_BYTES = 64


cdef class _Every(Walk):
    """Collects all events, with selected numeric stats."""
    cdef Numbers kinds, columns
    cdef vector[int64_t] offset, duration, value
    cdef vector[int32_t] kind, owner, column

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef Stat stat
        cdef int64_t metadata = 0, offset = 0, duration = 0
        cdef int32_t column
        while p < end:
            if not item(&p, end, &field):
                return BROKEN
            if field.number == EVENT_METADATA:
                metadata = <int64_t>field.value
            elif field.number == EVENT_OFFSET_PS:
                offset = <int64_t>field.value
            elif field.number == EVENT_DURATION_PS:
                duration = <int64_t>field.value
            elif field.number == EVENT_STATS and field.at != NULL:
                if not read_stat(field.at, field.at + field.value, &stat):
                    return BROKEN
                column = number_of(self.columns, stat.metadata)
                if (stat.form == IS_NUMBER or stat.form == IS_REFERENCE) and column >= 0:
                    self.owner.push_back(<int32_t>self.kind.size())
                    self.column.push_back(column)
                    self.value.push_back(stat.value)
                    self.left -= STAT_BYTES
        self.offset.push_back(offset)
        self.duration.push_back(duration)
        self.kind.push_back(number_of(self.kinds, metadata))
        self.left -= EVENT_BYTES
        return GO_ON if self.left >= 0 else FULL


def every(plane: Buffer, kinds: Mapping[int, int], columns: Mapping[int, int], lines: Spans | None = None,
          budget: Charges | None = None) -> dict[str, Any]:
    """Return all events of the plane, or of the lines at `lines` (Spans): `offset_ps`, `duration_ps` and `kind`.

    The kind is -1 where the metadata id is not in `kinds`. Of the stats, the numbers whose metadata id is in `columns`
    are returned in file order, as `owner` (the event), `column` and `value`; a reference is the id of a stat whose name
    is its text. Lines are returned as by `collect`. Raises
    ValueError where the bytes are no plane, and the error of `budget` where there are too many events.
    """
    cdef _Every walk = _Every()
    walk.kinds, walk.columns = Numbers(kinds), Numbers(columns)
    of_lines = walked(walk, plane, lines, budget)
    return {
        **of_lines, "offset_ps": array_of[int64_t](walk.offset), "duration_ps": array_of[int64_t](walk.duration),
        "kind": array_of[int32_t](walk.kind), "owner": array_of[int32_t](walk.owner),
        "column": array_of[int32_t](walk.column), "value": array_of[int64_t](walk.value),
    }


def any_event(plane: Buffer, budget: Charges | None = None) -> bool:
    """Return True at the first event of any line. Raises ValueError where the bytes before it are no plane."""
    return bool((walked(Walk(), plane, None, budget)["line_events"] > 0).any())
