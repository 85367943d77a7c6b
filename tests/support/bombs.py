"""Small files that stand for as much as possible: empty messages, repeated references, and nesting.

Each bomb is a valid file, or the beginning of one, of about the given size. Those of `empty_messages` are made for
every repeated field of a format, so that a new field has one too.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from tb_memplugin.protos.hlo_pb2 import HloComputationProto, HloInstructionProto, HloProto, ShapeProto
from tb_memplugin.protos.pprof_pb2 import Profile
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace

TUPLE, F32 = 13, 11
MAX_NESTING = 3  # of one type in itself


class Bomb(NamedTuple):
    """A file's name and content."""

    what: str
    name: str
    data: bytes


def varint(number: int) -> bytes:
    """Return a number in the wire format."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes) -> bytes:
    """Return a field of a message, a text or packed numbers."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def paths(descriptor: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each repeated field of a message, and of the messages in it."""
    for one in descriptor.fields:
        path = (*above, one)
        if one.is_repeated:
            yield path
        if one.message_type and sum(other.message_type is one.message_type for other in above) < MAX_NESTING:
            yield from paths(one.message_type, path)


def empty_messages(what: str, name: str, base: bytes, descriptor: Any, size: int) -> Iterator[Bomb]:
    """Yield, for each repeated field, a file with as many of its shortest elements as its size allows."""
    for path in paths(descriptor):
        last = path[-1]
        if last.message_type or last.type == last.TYPE_BYTES:
            content = field(last.number, b"") * (size // 2)
        else:
            content = field(last.number, bytes(size))
        for outer in reversed(path[:-1]):
            content = field(outer.number, content)
        label = ".".join(one.name for one in path)
        if name.endswith(".xplane.pb"):  # what the names of planes choose
            for plane in (b"/host:CPU", b"/host:metadata", b"/device:TPU:0", b"Task Environment"):
                if path[0].name == "planes" and len(path) > 1:
                    inner = field(2, plane) + content[len(content) - len(_inside(content)) :]
                    yield Bomb(f"{what} {plane.decode()} {label}", name, base + field(path[0].number, inner))
        yield Bomb(f"{what} {label}", name, base + content)


def _inside(content: bytes) -> bytes:
    """Return what is inside of the first field."""
    at = 1
    while content[at] & 0x80:
        at += 1
    return content[at + 1 :]


def instruction(number: int, opcode: bytes, shape: ShapeProto | None = None, **fields: Any) -> HloInstructionProto:
    serialized = (shape or array()).SerializeToString()
    return HloInstructionProto(id=number, name=b"i%d" % number, opcode=opcode, shape=serialized, **fields)


def array(*dimensions: int) -> ShapeProto:
    return ShapeProto(element_type=F32, dimensions=dimensions or (4,))


def tuple_of(count: int, element: ShapeProto | None = None) -> ShapeProto:
    made = ShapeProto(element_type=TUPLE)
    for _ in range(count):
        made.tuple_shapes.add().CopyFrom(element or ShapeProto())
    return made


def program(*computations: HloComputationProto) -> HloProto:
    """Return a program of these computations, the last of which is its entry, with a buffer for each instruction."""
    proto = HloProto()
    module = proto.hlo_module
    module.name, module.entry_computation_name = b"m", computations[-1].name
    module.entry_computation_id = computations[-1].id
    module.computations.extend(computations)
    allocation = proto.buffer_assignment.buffer_allocations.add(index=0, size=1 << 20)
    for at, one in enumerate(i for computation in computations for i in computation.instructions):
        buffer = proto.buffer_assignment.logical_buffers.add(id=at + 1, size=16)
        buffer.defined_at.instruction_id = one.id
        allocation.assigned.add(logical_buffer_id=at + 1, size=16, offset=16 * at)
    return proto


def computation(number: int, *instructions: HloInstructionProto, **fields: Any) -> HloComputationProto:
    root = instructions[-1].id if instructions else 0
    return HloComputationProto(id=number, name=b"c%d" % number, instructions=instructions, root_id=root, **fields)


def small_program() -> bytes:
    return program(
        computation(1, instruction(1, b"parameter"), instruction(2, b"add", operand_ids=[1, 1]))
    ).SerializeToString()


def programs(size: int) -> Iterator[tuple[str, HloProto]]:
    """Yield programs in which a few bytes refer to much."""
    n = max(size // 64, 8)
    many = max(int(size**0.5), 8)
    for opcode in (b"call", b"while", b"conditional", b"async-start", b"fusion"):
        chain = [computation(1, instruction(1, b"add"))]
        for level in range(2, min(n, 2000)):
            calls = [
                instruction(3 * level + k, opcode, called_computation_ids=[level - 1, level - 1]) for k in range(2)
            ]
            chain.append(computation(level, *calls))
        yield f"{opcode.decode()} nested twice in each level", program(*chain)
        body = computation(
            1,
            *(instruction(k, b"parameter", parameter_number=k) for k in range(1, n // 4)),
            is_fusion_computation=opcode == b"fusion",
        )
        callers = (
            instruction(n + k, opcode, tuple_of(4), called_computation_ids=[1], operand_ids=[n]) for k in range(n // 4)
        )
        yield f"{opcode.decode()} of one computation again and again", program(body, computation(2, *callers))
        one = instruction(n, opcode, called_computation_ids=[1] * (size // 2))
        yield f"one {opcode.decode()} of one computation again and again", program(body, computation(2, one))
    large = tuple_of(size // 4)
    again = program(computation(1, instruction(1, b"parameter", large), instruction(2, b"tuple", operand_ids=[1])))
    again.hlo_module.schedule.sequences[1].instruction_ids.extend([1] * (size // 2))
    yield "a schedule that lists a large tuple again and again", again
    yield (
        "a tuple of a large tuple again and again",
        program(
            computation(1, instruction(1, b"parameter", large), instruction(2, b"tuple", large, operand_ids=[1] * size))
        ),
    )
    yield (
        "reads of a large tuple again and again",
        program(
            computation(
                1,
                instruction(1, b"parameter", large),
                *(instruction(k, b"add", operand_ids=[1] * many) for k in range(2, many)),
            )
        ),
    )
    named = program(computation(1, instruction(1, b"parameter"), instruction(2, b"add", operand_ids=[1])))
    named.hlo_module.computations[0].instructions[0].name = b"n" * (size // 2)
    named.hlo_module.schedule.sequences[1].instruction_ids.extend([1] * (size // 2))
    yield "a schedule that lists a long name again and again", named
    entry = program(*(HloComputationProto() for _ in range(size // 8)), computation(1, instruction(1, b"add")))
    entry.hlo_module.entry_computation_name = b"n" * (size // 2)
    entry.hlo_module.entry_computation_id = 77
    yield "computations without a name, and a long name of the entry", entry
    deep = program(computation(1, *(instruction(k, b"add") for k in range(1, n))))
    deep.buffer_assignment.logical_buffers[0].defined_at.shape_index.extend([0] * (size // 2))
    yield "a deep index of a shape", deep
    nested = tuple_of(size // 4)
    for _ in range(90):
        outer = ShapeProto(element_type=TUPLE)
        outer.tuple_shapes.add().CopyFrom(nested)
        nested = outer
    yield "a tuple nested 90 deep", program(computation(1, instruction(1, b"parameter", nested)))
    yield "dimensions whose product is huge", program(computation(1, instruction(1, b"parameter", array(*[2**62] * n))))
    spaces = program(computation(1, instruction(1, b"parameter")))
    for color in range(size // 6):
        spaces.buffer_assignment.buffer_allocations.add(color=color, size=1)
    yield "a memory space for each allocation", spaces
    frames = program(computation(1, instruction(1, b"add")))
    index = frames.hlo_module.stack_frame_index
    for parent in range(size // 6):
        index.stack_frames.add(parent_frame_id=parent)
    for one_instruction in frames.hlo_module.computations[0].instructions:
        one_instruction.metadata.stack_frame_id = size // 6
    yield "a stack of all frames", frames
    roots = [instruction(k, b"parameter", parameter_number=k) for k in range(1, many)]
    inner = [instruction(many + k, b"add", operand_ids=range(1, many)) for k in range(1, 40)]
    results = instruction(3 * many, b"tuple", tuple_of(many), operand_ids=[many + 1] * many)
    fused = computation(1, *roots, *inner, results, is_fusion_computation=True)
    users = [
        instruction(9 * many + k, b"fusion", tuple_of(many), called_computation_ids=[1], operand_ids=range(1, many))
        for k in range(40)
    ]
    yield "fusions with as many results as operands", program(fused, computation(2, *users))
    scoped = b'"used_scoped_memory_configs":[{' * (size // 32)
    kernel = instruction(2, b"custom-call", backend_config=b'"custom_call_config":{' + scoped)
    spaced = program(computation(1, instruction(1, b"parameter"), kernel))
    spaced.buffer_assignment.buffer_allocations.add(color=1, size=5)
    yield "lists of scoped memory that never end", spaced
    for what, code, operand in kernels(size):
        call = instruction(2, b"custom-call", operand, operand_ids=[1] * min(size, 1000), backend_config=code)
        yield f"a kernel of {what}", program(computation(1, instruction(1, b"parameter", operand), call))
    held = program(computation(1, instruction(1, b"add")))
    rows = held.buffer_assignment.buffer_allocations[0]
    for at in range(size // 40):
        rows.assigned.add(logical_buffer_id=at + 2, offset=8 * at, size=8)
    for at in range(size // 40):
        rows.assigned.add(logical_buffer_id=size + at, offset=4, size=8 * (size // 40) - 8)
    rows.size = 1 << 30
    yield "many buffers that each cover many others", held


def kernels(size: int) -> Iterator[tuple[str, bytes, ShapeProto]]:
    """Yield configurations of Pallas kernels whose windows share what is long, with the shape of their operands."""
    many = min(size // 16, 1000)
    yield "windows of one block with many dimensions", kernel([2] * many, [1] * many), array()
    yield "windows of one operand with a long shape", kernel([2] * many, [8, 128]), array(*[1] * size)
    yield "dictionaries that say nothing", kernel([2], [8], further=size // 16), array()


def kernel(inputs: list[int], block: list[int], further: int = 0) -> bytes:
    """Return the configuration of a kernel: `inputs` are numbers of types, of which 2 is a block of this shape in VMEM.

    There are `further` dictionaries that say nothing about the kernel.
    """

    def number(value: int) -> bytes:
        return b"\0" + value.to_bytes(8, "little") if value > 0x7F else bytes([value << 1 | 1])

    def numbers(*values: int) -> bytes:
        return b"".join(map(number, values))

    def counted(values: list[int]) -> bytes:
        return numbers(len(values), *values)

    def section(kind: int, content: bytes) -> bytes:
        return bytes([kind]) + number(len(content)) + content

    strings = [b"builtin\0", b"function_type\0", b"scratch_operands\0", b"tpu\0"]
    # Attributes: the further dictionaries, two names, a type, the integer 0, the function, a memory space.
    name = further
    empty = numbers(1, 8) + numbers(name, name + 2) * 8
    function = numbers(1, 2, name, name + 2, name + 1, name + 3)
    builtin = [*[empty] * further, numbers(2, 1), numbers(2, 2), numbers(6, 0), numbers(8, 1, 0), function]
    memory = numbers(11, name + 5) + counted([2 * size for size in block]) + number(1)
    types = [number(2) + counted(inputs) + counted([]), number(5), memory]
    space = b"#tpu.memory_space<vmem>\0"
    content = b"".join([*builtin, space, *types])
    known = [len(one) << 1 | 1 for one in builtin]
    offsets = numbers(len(builtin) + 1, len(types), 0, len(known), *known, 1, 1, len(space) << 1)
    offsets += numbers(0, len(types), *(len(one) << 1 | 1 for one in types))
    sizes = numbers(len(strings), *(len(one) for one in reversed(strings)))
    parts = [(0, sizes + b"".join(strings)), (1, numbers(2, 0, 3)), (2, content), (3, offsets)]
    code = b"ML\xefR" + number(0) + b"x\0" + b"".join(section(kind, one) for kind, one in parts)
    return b'"custom_call_config":{"body":"' + b64encode(code) + b'"'


def profiles(size: int) -> Iterator[tuple[str, Profile]]:
    """Yield pprof profiles in which a few bytes refer to much."""

    def profile(*texts: bytes) -> Profile:
        made = Profile(string_table=[b"", b"space", b"bytes", b"device", b"kind", b"f", *texts])
        made.sample_type.add(type=1, unit=2)
        return made

    lines = profile()
    lines.function.add(id=1, name=5)
    lines.location.add(id=1)
    for _ in range(size // 4):
        lines.location[0].line.add(function_id=1)
    for _ in range(4):
        lines.sample.add(location_id=[1] * (size // 16), value=[1])
    yield "stacks of a location with many lines", lines
    deep = profile()
    deep.location.add(id=1)
    deep.sample.add(location_id=[1] * size, value=[1])
    yield "a deep stack", deep
    devices = profile(*(b"d%d" % k for k in range(size // 16)))
    for k in range(size // 16):
        devices.sample.add(value=[1]).label.add(key=3, str=6 + k)
    yield "a device for each sample", devices
    comments = profile(b"tb_memplugin " + b"[" * (size // 2))
    comments.comment.extend([6] * (size // 2))
    yield "a long comment again and again", comments
    types = profile(b"t" * (size // 2))
    del types.sample_type[:]
    for _ in range(size // 8):
        types.sample_type.add(type=6, unit=6)
    yield "types with long names", types
    ids = profile()
    for k in range(size // 16):
        ids.location.add(id=(k * 0x9E3779B97F4A7C15) % 2**64)
    yield "locations with huge ids", ids


def spaces(size: int) -> Iterator[tuple[str, XSpace]]:
    """Yield XPlane profiles in which a few bytes refer to much."""
    planes = XSpace()
    for _ in range(size // 14):
        planes.planes.add(name=b"/host:CPU")
    yield "host planes", planes
    found = XSpace()
    metadata = found.planes.add(name=b"/host:metadata")
    metadata.stat_metadata[1].id, metadata.stat_metadata[1].name = 1, b"Hlo Proto"
    for key in range(size // 24):
        metadata.event_metadata[key].stats.add(metadata_id=1, bytes_value=b"x")
    yield "programs", found

    def host(name: bytes = b"MemoryAllocation") -> tuple[XSpace, XPlane]:
        space = XSpace()
        plane = space.planes.add(name=b"/host:CPU")
        plane.event_metadata[1].id, plane.event_metadata[1].name = 1, name
        for key, stat in enumerate((b"allocator_name", b"index_on_host", b"bytes_allocated"), 1):
            plane.stat_metadata[key].id, plane.stat_metadata[key].name = key, stat
        return space, plane

    space, plane = host()
    line = plane.lines.add()
    for _ in range(size // 4):
        line.events.add(metadata_id=1)
    yield "allocations without stats", space
    space, plane = host()
    line = plane.lines.add()
    for core in range(size // 12):
        line.events.add(metadata_id=1).stats.add(metadata_id=2, int64_value=core)
    yield "an allocator for each event", space
    space, plane = host(b"x")
    for _ in range(size // 8):
        plane.lines.add().events.add()
    yield "threads of one event", space
    space, plane = host()
    line = plane.lines.add()
    for at in range(size // 16):
        line.events.add(metadata_id=2, offset_ps=at, duration_ps=10 * size - at)
    line.events.add(metadata_id=1, offset_ps=2 * size)
    yield "calls nested in each other", space


def bombs(size: int) -> Iterator[Bomb]:
    """Yield all bombs of protocol buffers, each of about this size, plain and compressed."""
    small = program(computation(1, instruction(1, b"parameter"))).SerializeToString()
    typed = Profile(string_table=[b"", b"space", b"bytes"])
    typed.sample_type.add(type=1, unit=2)
    yield from empty_messages("program", "a.hlo.pb", small, HloProto.DESCRIPTOR, size)
    yield from empty_messages("profile", "a.prof", typed.SerializeToString(), Profile.DESCRIPTOR, size)
    yield from empty_messages("xplane", "a.xplane.pb", b"", XSpace.DESCRIPTOR, size)
    for shape in empty_messages("shape", "", b"", ShapeProto.DESCRIPTOR, size):
        parameter = HloInstructionProto(id=1, name=b"p", opcode=b"parameter", shape=shape.data)
        yield Bomb(f"program: {shape.what}", "a.hlo.pb", program(computation(1, parameter)).SerializeToString())
    for what, proto in programs(size):
        yield Bomb(f"program: {what}", "a.hlo.pb", proto.SerializeToString())
    for what, profile in profiles(size):
        yield Bomb(f"profile: {what}", "a.prof", profile.SerializeToString())
    for what, space in spaces(size):
        yield Bomb(f"xplane: {what}", "a.xplane.pb", space.SerializeToString())


def compressed(size: int) -> Iterator[Bomb]:
    """Yield files of gzip whose content is a thousand times as large."""
    for name in ("a.prof", "a.hlo.pb.gz", "a.json.gz"):
        for what, repeated in (("zeros", b"\0"), ("empty samples", b"\x12\0"), ("lists", b"["), ("numbers", b"0,")):
            yield Bomb(f"gzip of {what}", name, gzip.compress(repeated * (size * 1000 // len(repeated)), 9))
