"""Serialized shapes (ShapeProto) as tuples. Importing protobuf's runtime takes longer than reading a small program."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from tb_memplugin.native.protobuf.fields cimport Item, item, varint

from tb_memplugin.native.hlo.shape_types import MAX_DEPTH, XlaLayout, XlaShape

cdef enum:
    ELEMENT_TYPE = 2
    DIMENSIONS = 3
    TUPLE_SHAPES = 4
    LAYOUT = 5
    IS_DYNAMIC = 6
    MINOR_TO_MAJOR = 1
    TILES = 6
    ELEMENT_BITS = 7
    MEMORY_SPACE = 8
    TAIL_PADDING = 16
    TILE_DIMENSIONS = 1

NO_LAYOUT: XlaLayout = XlaLayout()


def parse_shape(bytes data) -> XlaShape:
    """Parse a serialized message. Raises ValueError where it is damaged or nested more than 100 deep."""
    cdef const unsigned char* p = data
    return _shape(p, p + len(data), MAX_DEPTH)


cdef object _shape(const unsigned char* p, const unsigned char* end, int depth):
    cdef const unsigned char* begin = p
    cdef Item found
    cdef int32_t element_type = 0
    cdef list dimensions = [], elements = [], dynamic = []
    cdef bytes layout = b""
    if depth < 0:
        raise ValueError("nested too deep")
    while p < end:
        _next(&p, end, &found)
        if found.number == DIMENSIONS:
            _numbers(&found, dimensions)
        elif found.number == IS_DYNAMIC:
            _numbers(&found, dynamic)
        elif found.at == NULL:
            if found.number == ELEMENT_TYPE:
                element_type = <int32_t>found.value
        elif found.number == TUPLE_SHAPES:
            elements.append(_shape(found.at, found.at + found.value, depth - 1))
        elif found.number == LAYOUT:  # messages of one field are merged
            layout += found.at[:found.value]
    return XlaShape(
        element_type,
        tuple(dimensions),
        tuple(elements),
        _layout(layout) if layout else NO_LAYOUT,
        tuple([number != 0 for number in dynamic]),
        end - begin,
    )


cdef object _layout(bytes data):
    cdef const unsigned char* p = data
    cdef const unsigned char* end = p + len(data)
    cdef Item found
    cdef list order = [], tiles = []
    cdef int64_t bits = 0, space = 0, padding = 0
    while p < end:
        _next(&p, end, &found)
        if found.number == MINOR_TO_MAJOR:
            _numbers(&found, order)
        elif found.number == TILES and found.at != NULL:
            tiles.append(_tile(found.at, found.at + found.value))
        elif found.at == NULL:
            if found.number == ELEMENT_BITS:
                bits = <int64_t>found.value
            elif found.number == MEMORY_SPACE:
                space = <int64_t>found.value
            elif found.number == TAIL_PADDING:
                padding = <int64_t>found.value
    return XlaLayout(tuple(order), tuple(tiles), bits, space, padding)


cdef tuple _tile(const unsigned char* p, const unsigned char* end):
    cdef Item found
    cdef list dimensions = []
    while p < end:
        _next(&p, end, &found)
        if found.number == TILE_DIMENSIONS:
            _numbers(&found, dimensions)
    return tuple(dimensions)


cdef int _next(const unsigned char** p, const unsigned char* end, Item* found) except -1:
    if not item(p, end, found):
        raise ValueError("the shape is damaged")
    return 0


cdef int _numbers(Item* found, list numbers) except -1:
    """Append the numbers of a repeated field, packed or not, as signed 64 bits."""
    cdef const unsigned char* p = found.at
    cdef uint64_t value = 0
    if p == NULL:
        numbers.append(<int64_t>found.value)
        return 0
    while p < found.at + found.value:
        if not varint(&p, found.at + found.value, &value):
            raise ValueError("the shape is damaged")
        numbers.append(<int64_t>value)
    return 0
