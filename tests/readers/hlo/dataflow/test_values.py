"""Dataflow values: users, against protobuf's own parser and a plain walk; input-output pairs; and rows."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from support.hand_built import Handmade, f32, read
from support.steps import LAYERS, compiled, recording

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

LEAVES = 3 * LAYERS
STRAIGHT = ["momentum_donated", "adam", "clipped", "mixed", "decode", "forward"]  # no loops, no branches


def values(of: Recording) -> DataflowValues:
    known = dataflow_graph(of)
    assert known is not None
    return known.values


def read_by(proto: HloProto) -> dict[str, set[str]]:
    """Map names of instructions to the names of their users, for one computation without inner tuples."""
    module = proto.hlo_module
    entry = next(c for c in module.computations if c.id == module.entry_computation_id)
    by_id = {instruction.id: instruction for instruction in entry.instructions}

    def origin(number: int) -> int:
        while by_id[number].opcode == b"bitcast":
            number = by_id[number].operand_ids[0]
        return number

    found = defaultdict[str, set[str]](set)
    for instruction in entry.instructions:
        if instruction.opcode not in (b"bitcast", b"tuple"):
            for operand in instruction.operand_ids:
                found[by_id[origin(operand)].name.decode()].add(instruction.name.decode())
    return found


@pytest.mark.parametrize("name", STRAIGHT)
def test_uses(name: str) -> None:
    of, truth = recording(name), read_by(HloProto.FromString(compiled(name)))
    assert of.program is not None
    begin, positions = uses(of)
    told = 0
    for row in range(len(of.allocations)):
        if "{" in of.allocations.name[row] or of.allocations.op[row] == "tuple" or of.allocations.defined[row] < -1:
            continue
        at = positions[begin[row] : begin[row + 1]].tolist()
        assert at == sorted(set(at))
        if of.allocations.name[row] in truth:
            told += 1
            assert {of.program.name[p] for p in at} == truth[of.allocations.name[row]], of.allocations.name[row]
    assert told > 10


@pytest.mark.parametrize("name", STRAIGHT)
def test_arguments_and_results(name: str) -> None:
    of, module = recording(name), HloProto.FromString(compiled(name)).hlo_module
    known, rows = values(of), row_of_value(of)
    entry = next(c for c in module.computations if c.id == module.entry_computation_id)
    numbers = {i.parameter_number: i.name.decode() for i in entry.instructions if i.opcode == b"parameter"}
    arguments = {int(known.argument[v]): of.allocations.name[rows[v]] for v in np.flatnonzero(known.argument >= 0)}
    assert arguments == numbers
    aliases = {e.output_shape_index[0]: e.parameter_number for e in module.input_output_alias.entries}
    assert {leaf: donor for leaf, donor in enumerate(known.donor.tolist()) if donor >= 0} == aliases
    assert (rows[known.result] >= 0).all()


@pytest.mark.parametrize(
    "name, pairs",
    [
        ("momentum", [(n, n) for n in range(2 * LEAVES)]),
        ("momentum_donated", [(n, n) for n in range(2 * LEAVES)]),
        ("adam", [(n, n) for n in range(3 * LEAVES + 1)]),
        ("scanned", [(n, n) for n in range(6)]),
        ("accumulated", [(n, n) for n in range(2 * LEAVES)]),
        ("many_steps", [(n, n) for n in range(2 * LEAVES)]),
        ("decode", [(4 * LAYERS + n, 1 + n) for n in range(2 * LAYERS)]),
        ("forward", []),
        ("product", []),
    ],
)
@pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])
def test_input_output_pairs(name: str, pairs: list[tuple[int, int]], named: bool) -> None:
    """Check (argument, leaf of the result) pairs: Adam's moments and weights have one shape and are not confused."""
    of = recording(name, named=named)
    found = input_output_pairs(of)
    known = values(of)
    numbers = known.argument[found.argument].tolist()
    # A step in a residual stream has the same form: x is returned as x + f(x).
    which = [row for row, number in enumerate(numbers) if name != "decode" or number in dict(pairs)]
    assert [(numbers[row], int(found.leaf[row])) for row in which] == pairs
    donated = name in ("momentum_donated", "scanned", "accumulated", "many_steps", "decode")
    assert found.donated[which].tolist() == [int(donated)] * len(pairs)


def test_a_cache_is_written_in_place() -> None:
    found = input_output_pairs(recording("decode"))
    assert found.in_place[-2 * LAYERS :].all()
    assert not input_output_pairs(recording("momentum")).in_place.any()


def test_an_update_is_made_in_one_step_of_the_weight_and_in_more_of_its_moments() -> None:
    """Check `w - lr * m / ...`: the nearest argument is paired with the output."""
    of = recording("adam")
    found, known = input_output_pairs(of), values(of)
    weights = found.value[:LEAVES]
    pairs = known.derivations
    for weight, value in zip(found.argument[:LEAVES].tolist(), weights.tolist(), strict=True):
        of_weight = pairs.steps[(pairs.source == weight) & (pairs.target == value)]
        of_others = pairs.steps[(pairs.source != weight) & (pairs.target == value)]
        assert of_weight.tolist() == [1] or of_weight.min() <= of_others.min()
        assert set(pairs.kind[pairs.target == value].tolist()) == {Derivation.ELEMENTWISE}


def test_values_are_worked_out_once_and_when_asked() -> None:
    asked = iter([5, 6])
    later = Lazy(lambda: next(asked))
    assert (later(), later(), next(asked)) == (5, 5, 6)


def test_what_two_memory_spaces_hold_is_one_flow() -> None:
    """Include users of a value in another memory, although that value has no row here."""
    made = Handmade()
    first = made.instruction("first", shape=f32(64))
    second = made.instruction("second", [first], shape=f32(64))
    made.instruction("last", [second], shape=f32(64))
    for instruction, color in ((first, 0), (second, 1)):
        made.allocation((made.buffer(instruction, 256, color=color), 0), size=256, color=color)

    main, other = read_hlo(made.data, source="handmade")
    assert values(main) is values(other)
    assert row_of_value(main).tolist() == [0, -1]
    assert row_of_value(other).tolist() == [-1, 0]
    assert [uses(of)[1].tolist() for of in (main, other)] == [[1], [2]]


def test_a_recording_without_a_program_has_no_flow() -> None:
    made = Handmade()
    made.allocation((made.buffer(made.instruction("only"), 4), 0), size=4)
    assert dataflow_graph(read(made)) is not None
    from support.recordings import Row
    from support.recordings import recording as of_rows

    plain = of_rows([Row(8, 0, 4)], 4)
    assert dataflow_graph(plain) is None
    assert len(input_output_pairs(plain)) == 0
    assert uses(plain)[0].tolist() == [0, 0]
