"""The compiled scan of protocol buffers, against protobuf's own parser, column by column."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import given, settings
from hypothesis import strategies as st
from support.profiles import compiled_programs, profiles

from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos import hlo_pb2, xplane_pb2
from tb_memplugin.readers.hlo.module.columns import sparse_numbers, sparse_spans

Tables = dict[str, dict[str, list[Any]]]


def without_maps(module: Any) -> Any:
    """Return the messages of a .proto file, with maps in their wire form: repeated pairs, in order."""
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)

    def unmap(messages: Any) -> None:
        for message in messages:
            message.ClearField("options")
            unmap(message.nested_type)

    unmap(file.message_type)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))
        for name in module.DESCRIPTOR.message_types_by_name
    }


HLO, XPLANE = without_maps(hlo_pb2), without_maps(xplane_pb2)


def raw(value: Any, field: FieldDescriptor) -> int:
    """Return a number as a signed 64-bit integer."""
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    return (int(value) + 2**63) % 2**64 - 2**63


def tables_of(message: Message) -> Tables:
    """Compute the expected result of scan from the parsed message."""
    tables: Tables = {}
    declare(tables, "", "", message.DESCRIPTOR)
    add_row(tables, "", 0, message)
    return tables


def declare(tables: Tables, path: str, prefix: str, descriptor: Any) -> None:
    columns = tables.setdefault(path, {"parent": []})
    for field in descriptor.fields:
        below = f"{path}.{prefix}{field.name}" if path else prefix + field.name
        if field.is_repeated and field.message_type:
            declare(tables, below, "", field.message_type)
        elif field.is_repeated:
            tables[below] = {"parent": [], "value": []}
        elif field.message_type:
            declare(tables, path, f"{prefix}{field.name}.", field.message_type)
        else:
            columns[prefix + field.name] = []


def add_row(tables: Tables, path: str, parent: int, message: Message) -> None:
    row = len(tables[path]["parent"])
    tables[path]["parent"].append(parent)
    fill(tables, path, row, "", message)


def fill(tables: Tables, path: str, row: int, prefix: str, message: Any) -> None:
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        below = f"{path}.{prefix}{field.name}" if path else prefix + field.name
        if field.is_repeated:
            for item in value:
                if field.message_type:
                    add_row(tables, below, row, item)
                else:
                    tables[below]["parent"].append(row)
                    tables[below]["value"].append(item if isinstance(item, bytes) else raw(item, field))
        elif field.message_type:
            fill(tables, path, row, f"{prefix}{field.name}.", value)
        else:
            tables[path][prefix + field.name].append(value if isinstance(value, bytes) else raw(value, field))


def scanned(data: bytes, plan: Plan) -> Tables:
    def values(column: Any) -> list[Any]:
        if not isinstance(column, Spans):
            return list(column.tolist())
        return [data[s : s + n] for s, n in zip(column.start.tolist(), column.length.tolist(), strict=True)]

    tables = scan(data, plan)
    return {path: {name: values(column) for name, column in columns.items()} for path, columns in tables.items()}


@pytest.mark.parametrize("program", compiled_programs(), ids=str)
def test_every_column_of_every_program(program: Any) -> None:
    expected = tables_of(HLO["HloProto"].FromString(program.data))
    assert scanned(program.data, Plan(hlo_pb2.HloProto.DESCRIPTOR)) == expected


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_every_column_of_a_profile_s_metadata(path: Any) -> None:
    plan = Plan(xplane_pb2.PlaneMetadata.DESCRIPTOR)
    for plane in XPLANE["PlaneList"].FromString(path.read_bytes()).planes:
        if XPLANE["PlaneName"].FromString(plane).name == b"/host:metadata":
            assert scanned(plane, plan) == tables_of(XPLANE["PlaneMetadata"].FromString(plane))


MESSAGES = [
    HLO["HloInstructionProto"],
    HLO["BufferAssignmentProto"],
    HLO["HloScheduleProto"],
    HLO["StackFrameIndexProto"],
    XPLANE["XPlane"],
]
NUMBERS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_ENUM: st.integers(-(2**31), 2**31 - 1),  # enums of proto3 are open
    FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=6),
}


@st.composite
def messages(draw: st.DrawFn, kind: Any) -> Any:
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if not draw(st.booleans()):
            continue
        inner = messages(message_factory.GetMessageClass(field.message_type)) if field.message_type else None
        drawn = inner if inner is not None else NUMBERS[field.type]
        if field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(drawn, max_size=2)))
        elif inner is not None:
            getattr(message, field.name).CopyFrom(draw(inner))
        else:
            setattr(message, field.name, draw(drawn))
    return message


any_message = st.sampled_from(MESSAGES).flatmap(messages)
few = settings(max_examples=60, derandomize=True)


@few
@given(any_message)
def test_every_column_of_any_message(message: Any) -> None:
    data = message.SerializeToString()
    assert scanned(data, Plan(message.DESCRIPTOR)) == tables_of(message)


@few
@given(any_message, st.data())
def test_a_message_cut_short_is_refused_as_protobuf_refuses_it(message: Any, more: st.DataObject) -> None:
    data = message.SerializeToString()
    cut = data[: more.draw(st.integers(0, len(data)))]
    try:
        expected = tables_of(type(message).FromString(cut))
    except DecodeError:
        with pytest.raises(ValueError, match=f"of {len(cut)}$"):
            scan(cut, Plan(message.DESCRIPTOR))
    else:
        assert scanned(cut, Plan(message.DESCRIPTOR)) == expected


@settings(max_examples=300, derandomize=True)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        tables = scanned(data, Plan(hlo_pb2.HloInstructionProto.DESCRIPTOR))
    except ValueError as error:
        assert "not a valid message at byte" in str(error)
    else:
        assert len(tables[""]["name"]) == 1


@few
@given(st.lists(messages(HLO["HloComputationProto"]), max_size=4))
def test_messages_located_first_and_opened_later_are_the_same(computations: list[Any]) -> None:
    module = HLO["HloModuleProto"](computations=computations)
    data = module.SerializeToString()
    outline = Plan(hlo_pb2.HloModuleProto.DESCRIPTOR, skip=("computations.instructions",), located=("computations",))
    found = scan(data, outline)
    assert "computations.instructions" not in found
    opened = scan(data, Plan(hlo_pb2.HloComputationProto.DESCRIPTOR), found["computations"]["span"])
    assert opened[""]["parent"].tolist() == list(range(len(computations)))
    whole = scan(data, Plan(hlo_pb2.HloModuleProto.DESCRIPTOR))
    for path, table in opened.items():
        if path:
            for name, column in table.items():
                np.testing.assert_array_equal(column, whole[f"computations.{path}"][name])


@few
@given(st.lists(messages(HLO["HloInstructionProto"]), max_size=8))
def test_interned_texts_are_numbered_in_order_of_first_appearance(instructions: list[Any]) -> None:
    data = HLO["HloComputationProto"](instructions=instructions).SerializeToString()
    interned = ("instructions.opcode", "instructions.shape")
    table = scan(data, Plan(hlo_pb2.HloComputationProto.DESCRIPTOR, interned=interned))["instructions"]
    for name in ("opcode", "shape"):
        codes, distinct = table[name]
        texts = [data[s : s + n] for s, n in zip(distinct.start.tolist(), distinct.length.tolist(), strict=True)]
        expected = [getattr(instruction, name) for instruction in instructions]
        assert texts == [text for text in dict.fromkeys(expected) if text]
        assert [texts[code] if code >= 0 else b"" for code in codes.tolist()] == expected


@few
@given(st.lists(messages(HLO["HloInstructionProto"]), max_size=8))
def test_sparse_fields_are_tables_of_the_rows_that_have_them(instructions: list[Any]) -> None:
    data = HLO["HloComputationProto"](instructions=instructions).SerializeToString()
    sparse = ("instructions.parameter_number", "instructions.metadata.op_name")
    tables = scan(data, Plan(hlo_pb2.HloComputationProto.DESCRIPTOR, sparse=sparse))
    rows = np.arange(len(instructions))
    numbers = sparse_numbers(tables["instructions.parameter_number"], rows)
    assert numbers.tolist() == [instruction.parameter_number for instruction in instructions]
    starts, lengths = sparse_spans(tables["instructions.metadata.op_name"], rows)
    texts = [data[s : s + n] for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    assert texts == [instruction.metadata.op_name for instruction in instructions]
    assert not {"parameter_number", "metadata.op_name"} & set(tables["instructions"])


def test_numbers_take_the_bytes_of_their_type() -> None:
    tables = scan(
        HLO["BufferAllocationProto"](index=1).SerializeToString(), Plan(hlo_pb2.BufferAllocationProto.DESCRIPTOR)
    )
    kinds = {name: column.dtype for name, column in tables[""].items()}
    assert (kinds["parent"], kinds["index"], kinds["is_constant"]) == (np.int32, np.int64, np.uint8)


def test_a_table_of_many_rows_is_the_same_as_several_of_few() -> None:
    many = HLO["HeapSimulatorTrace"](events=[{"kind": n % 3, "buffer_id": n * n} for n in range(20_000)])
    events = scan(many.SerializeToString(), Plan(hlo_pb2.HeapSimulatorTrace.DESCRIPTOR))["events"]
    np.testing.assert_array_equal(events["kind"], np.arange(20_000) % 3)
    np.testing.assert_array_equal(events["buffer_id"], np.arange(20_000) ** 2)
    assert not events["parent"].any()
