"""Selected events of an XPlane, as columns."""
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.protobuf.fields cimport Item, item
from tb_memplugin.native.xplane.walk cimport (
    BROKEN, EVENT_METADATA, EVENT_OFFSET_PS, FULL, GO_ON, Numbers, Walk, number_of, walked,
)


cdef enum:
    EVENT_BYTES = 160   # growing columns, their copies, and the readers' columns


cdef class _Chosen(Walk):
    """Collects the events of some names."""
    cdef Numbers kinds
    cdef vector[int32_t] of_line, kind
    cdef vector[int64_t] offset, start, length

    cdef int event(self, const unsigned char* p, const unsigned char* end) except -1 nogil:
        cdef Item field
        cdef const unsigned char* q = p
        cdef int64_t offset = 0
        cdef int kind = -1
        # The metadata id comes first, so skipping the many other events costs one field.
        while q < end:
            if not item(&q, end, &field):
                return BROKEN
            if field.number == EVENT_METADATA and field.at == NULL:
                kind = number_of(self.kinds, <int64_t>field.value)
                break
        else:
            kind = number_of(self.kinds, 0)
        if kind < 0:
            return GO_ON
        self.left -= EVENT_BYTES
        if self.left < 0:
            return FULL
        q = p
        while q < end:
            if not item(&q, end, &field):
                return BROKEN
            if field.number == EVENT_OFFSET_PS:
                offset = <int64_t>field.value
        self.of_line.push_back(self.line)
        self.kind.push_back(kind)
        self.offset.push_back(offset)
        self.start.push_back(p - self.base)
        self.length.push_back(end - p)
        return GO_ON


def select(plane: Buffer, kinds: Mapping[int, int], lines: Spans | None = None,
           budget: Charges | None = None) -> dict[str, Any]:
    """Return the events whose metadata id is in `kinds`, {event metadata id: kind}, in file order.

    With `lines` (Spans), only the events of these lines are returned, and the lines are numbered from 0.
    Per event: its line, `offset_ps`, kind, and its place in the plane (`start`, `length`). Per line: its timestamp in
    ns, its number of events, and its name. Raises ValueError where the bytes are no plane, and the error of `budget` if
    there are too many events.
    """
    cdef _Chosen walk = _Chosen()
    walk.kinds = Numbers(kinds)
    lines = walked(walk, plane, lines, budget)
    return {
        **lines, "line": array_of[int32_t](walk.of_line), "offset_ps": array_of[int64_t](walk.offset),
        "kind": array_of[int32_t](walk.kind), "start": array_of[int64_t](walk.start),
        "length": array_of[int64_t](walk.length),
    }
