"""Scanner of the profiler's traces: one pass over the JSON, which keeps the fields of few events and no tree.

Time is linear in the bytes of any file: each byte is read at most twice. Braces and quotes inside of texts do not
count. A text ends with its line, because JSON has no line breaks in texts; so after an unescaped quote the scanner
recovers at the next line.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from tb_memplugin.native.arrays cimport array_of
from tb_memplugin.native.torch.json_numbers cimport Number, read_number

cdef enum:
    NO_KEY = 0       # a key without meaning here
    ADDRESS = 1      # to DEVICE_TYPE: the arguments of an event, in the order of FIELDS
    DEVICE_TYPE = 6
    THREAD = 7
    CATEGORY = 8
    NAME = 9
    TIME = 10
    DURATION = 11
    ARGUMENTS = 12

FIELDS: tuple[str, ...] = ("Addr", "Bytes", "Total Allocated", "Total Reserved", "Device Id", "Device Type")

cdef enum:
    LEVELS = 64      # open objects that are remembered, the innermost ones; a power of two
    ARGUMENT_FIELDS = 6
    OPERATOR = 1
    ANNOTATION = 2

cdef struct Fields:
    int64_t number[8]               # by key; from ADDRESS to THREAD
    double time
    double duration
    int64_t name
    int64_t name_length
    uint32_t present                # a bit for each key
    uint32_t damaged                # a bit for each key whose value is not a number that fits
    uint8_t key                     # the key whose value comes next
    uint8_t category
    bint memory                     # named [memory]


cdef inline uint8_t key_of(const uint8_t* text, Py_ssize_t length) noexcept nogil:
    if length == 2:
        return TIME if memcmp(text, b"ts", 2) == 0 else NO_KEY
    if length == 3:
        if memcmp(text, b"cat", 3) == 0:
            return CATEGORY
        if memcmp(text, b"tid", 3) == 0:
            return THREAD
        return DURATION if memcmp(text, b"dur", 3) == 0 else NO_KEY
    if length == 4:
        if memcmp(text, b"name", 4) == 0:
            return NAME
        if memcmp(text, b"args", 4) == 0:
            return ARGUMENTS
        return ADDRESS if memcmp(text, b"Addr", 4) == 0 else NO_KEY
    if length == 5:
        return ADDRESS + 1 if memcmp(text, b"Bytes", 5) == 0 else NO_KEY
    if length == 15:
        return ADDRESS + 2 if memcmp(text, b"Total Allocated", 15) == 0 else NO_KEY
    if length == 14:
        return ADDRESS + 3 if memcmp(text, b"Total Reserved", 14) == 0 else NO_KEY
    if length == 9:
        return ADDRESS + 4 if memcmp(text, b"Device Id", 9) == 0 else NO_KEY
    if length == 11:
        return DEVICE_TYPE if memcmp(text, b"Device Type", 11) == 0 else NO_KEY
    return NO_KEY


cdef class _Scanner:
    cdef const uint8_t* data
    cdef Py_ssize_t size
    cdef Fields level[LEVELS]
    cdef uint32_t depth, kept       # the innermost `kept` of the open objects are remembered
    cdef vector[double] memory_time, start, duration
    cdef vector[int64_t] memory_values, operator_thread, name_start, name_length
    cdef vector[uint8_t] is_operator
    cdef int64_t damaged
    cdef int64_t room               # events that may still be kept

    cdef inline Fields* top(self) noexcept nogil:
        return &self.level[self.depth & (LEVELS - 1)]

    cdef void open(self) noexcept nogil:
        cdef Fields* made
        cdef int i
        self.depth += 1
        self.kept = min(self.kept + 1, <uint32_t>LEVELS)
        made = self.top()
        for i in range(8):
            made.number[i] = -1
        made.present = made.damaged = 0
        made.key = made.category = 0
        made.name_length = 0
        made.memory = False

    cdef int close(self) except -1 nogil:
        cdef Fields* ended = self.top()
        cdef Fields* outer
        cdef int i
        if self.kept == 0:
            return 0
        self.emit(ended)
        self.depth -= 1
        self.kept -= 1
        outer = self.top()
        if self.kept and outer.key == ARGUMENTS:
            for i in range(ADDRESS, DEVICE_TYPE + 1):
                outer.number[i] = ended.number[i]
            outer.damaged |= ended.damaged & ((1 << (DEVICE_TYPE + 1)) - 1)
            outer.present |= 1 << ARGUMENTS
        outer.key = NO_KEY
        return 0

    cdef int emit(self, Fields* event) except -1 nogil:
        cdef uint32_t timed = (1 << TIME) | (1 << DURATION) | (1 << THREAD)
        cdef uint32_t of_arguments = (1 << (DEVICE_TYPE + 1)) - 1
        cdef int i
        if event.memory and event.present & (1 << ARGUMENTS):
            if not event.present & (1 << TIME) or event.damaged & of_arguments:
                self.damaged += 1
                return 0
            self.room -= 1
            self.memory_time.push_back(event.time)
            for i in range(ADDRESS, THREAD + 1):
                self.memory_values.push_back(event.number[i])
        elif event.category and event.name_length and event.present & timed == timed:
            if event.time < 0 or event.duration < 0:
                return 0
            self.room -= 1
            self.start.push_back(event.time)
            self.duration.push_back(event.duration)
            self.operator_thread.push_back(event.number[THREAD])
            self.name_start.push_back(event.name)
            self.name_length.push_back(event.name_length)
            self.is_operator.push_back(event.category == OPERATOR)
        return 0

    cdef void number(self, Fields* event, Number* found) noexcept nogil:
        cdef uint8_t key = event.key
        if key == TIME:
            event.time = found.value
        elif key == DURATION:
            event.duration = found.value
        elif found.fits:
            event.number[key] = found.integer
        else:
            event.damaged |= <uint32_t>1 << key
            return
        event.present |= <uint32_t>1 << key

    cdef void text(self, Fields* event, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
        cdef uint8_t key = event.key
        if key == NAME:
            event.name, event.name_length = start - 1, length + 2    # with its quotes
            event.memory = length == 8 and memcmp(self.data + start, b"[memory]", 8) == 0
        elif key == CATEGORY:
            if length == 6 and memcmp(self.data + start, b"cpu_op", 6) == 0:
                event.category = OPERATOR
            elif length == 15 and memcmp(self.data + start, b"user_annotation", 15) == 0:
                event.category = ANNOTATION
            else:
                event.category = 0
        elif key != NO_KEY and key != ARGUMENTS:
            event.damaged |= <uint32_t>1 << key

    cdef int run(self) except -1 nogil:
        cdef Py_ssize_t at = 0, n = self.size, start, after
        cdef const uint8_t* data = self.data
        cdef uint8_t byte
        cdef Fields* event
        cdef Number found
        while at < n and self.room >= 0:
            byte = data[at]
            if byte == 34:    # a quote
                at += 1
                start = at
                while at < n and data[at] != 34 and data[at] != 10:
                    at += 2 if data[at] == 92 else 1
                if at >= n:
                    break
                if data[at] == 10:    # not JSON: the line ends inside of a text
                    at += 1
                    continue
                after = at + 1
                while after < n and (data[after] == 32 or data[after] == 10 or data[after] == 13 or data[after] == 9):
                    after += 1
                event = self.top()
                if after < n and data[after] == 58:    # a colon
                    event.key = key_of(data + start, at - start)
                    at = after + 1
                    continue
                self.text(event, start, at - start)
                event.key = NO_KEY
                at = after
            elif 48 <= byte <= 57 or byte == 45:
                event = self.top()
                at = read_number(data, at, n, &found)
                if NO_KEY < event.key != NAME and event.key != CATEGORY and event.key != ARGUMENTS:
                    self.number(event, &found)
                event.key = NO_KEY
            elif byte == 123:    # {
                self.open()
                at += 1
            elif byte == 125:    # }
                self.close()
                at += 1
            elif byte == 91:     # [
                self.top().key = NO_KEY
                at += 1
            else:
                at += 1
        return 0


def scan(data: Buffer,
         int64_t room=0x7FFFFFFFFFFFFFFF) -> tuple[tuple[F64, I64], tuple[F64, F64, I64, U8, I64, I64], int]:
    """Return (memory events, operators, number of damaged memory events).

    Memory events: (time in microseconds, values: n x (FIELDS, thread), -1 where one is missing). Operators and user
    annotations: (start, duration, thread, 1 for operators, start and length of the name in `data`, with its quotes).
    Raises MemoryError for more than `room` events.
    """
    cdef const uint8_t[::1] view = data
    cdef _Scanner scanner = _Scanner()
    scanner.size, scanner.room = view.shape[0], room
    if scanner.size:
        scanner.data = &view[0]
        with nogil:
            scanner.run()
    if scanner.room < 0:
        raise MemoryError()
    values = array_of[int64_t](scanner.memory_values).reshape(-1, ARGUMENT_FIELDS + 1)
    operators = (
        array_of[double](scanner.start), array_of[double](scanner.duration),
        array_of[int64_t](scanner.operator_thread),
        array_of[uint8_t](scanner.is_operator), array_of[int64_t](scanner.name_start),
        array_of[int64_t](scanner.name_length),
    )
    return (array_of[double](scanner.memory_time), values), operators, scanner.damaged
