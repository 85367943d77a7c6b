"""The stored dumps of the corpus against XLA's own report and the truth about their arguments."""

from __future__ import annotations

import json

import pytest
from programs.argument_roles import share_wrong
from programs.stored import FOLDER, Stored, stored_programs
from programs.stored_advice import Promise, promises
from programs.targets import GPU_HOSTS, TARGETS

STORED = stored_programs()
MAX_BYTES = 6 << 20
ROUNDED = 1.04  # gaps between buffers are reserved, too: with donation, 3.5 % of what a UNet saves
of_each_dump = pytest.mark.parametrize("stored", STORED, ids=str)


def test_the_corpus_covers_every_target_with_programs_of_each_kind() -> None:
    assert len({stored.name for stored in STORED}) >= 28
    assert {stored.target for stored in STORED} == set(TARGETS)
    assert sum(stored.target in GPU_HOSTS for stored in STORED) >= 8
    assert {stored.name for stored in STORED} == {s.name for s in STORED if s.target not in GPU_HOSTS}


def test_the_stored_dumps_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MAX_BYTES


def test_each_dump_has_a_report_and_each_report_a_dump() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{s}{end}" for s in STORED for end in (".json", ".hlo.pb.gz")}


@of_each_dump
def test_a_dump_contains_no_path_of_the_machine_that_compiled_it(stored: Stored) -> None:
    for text in (stored.proto, json.dumps(stored.facts).encode()):
        assert not [path for path in (b"/work/", b"/root/", b"/tmp/", b"/home/") if path in text]


@of_each_dump
def test_each_memory_space_is_as_large_as_xla_reports(stored: Stored) -> None:
    assert {color: space.reserved for color, space in stored.spaces().items()} == stored.reserved


@of_each_dump
def test_no_more_is_live_than_is_reserved(stored: Stored) -> None:
    assert not [space for space in stored.spaces().values() if space.live > space.reserved]


@of_each_dump
def test_an_argument_has_the_role_that_the_program_gives_it(stored: Stored) -> None:
    arguments = stored.arguments()
    assert arguments
    assert share_wrong(arguments) <= 1, [a for a in arguments if not a.right]


@of_each_dump
def test_each_part_of_an_argument_is_on_as_many_devices_as_its_sharding_says(stored: Stored) -> None:
    assert not [found for found in stored.copies() if found[1] != found[2]]


@of_each_dump
def test_each_dimension_of_an_argument_has_as_many_parts_as_its_sharding_says(stored: Stored) -> None:
    leaves, program = stored.facts["arguments"], next(r.program for r in stored.recordings if r.program is not None)
    shardings = program.shardings
    if shardings is not None and len(shardings.copies) == len(leaves):  # JAX drops arguments that nothing uses
        for at, leaf in enumerate(leaves):
            parts = [whole // part for whole, part in zip(leaf["shape"], leaf["local_shape"], strict=True)]
            assert [shardings.parts_of(at, d) for d in range(len(parts))] == parts, leaf["path"]


@of_each_dump
def test_a_change_is_stored_with_what_xla_reserves_then(stored: Stored) -> None:
    for kind, change in stored.facts["changes"].items():
        assert change["knobs"], kind
        assert change["reserved"]["0"] > 0


@pytest.mark.parametrize("stored", [stored for stored in STORED if stored.facts["changes"]], ids=str)
def test_advice_that_is_followed_lowers_what_xla_reserves(stored: Stored) -> None:
    assert not [str(promise) for promise in promises(stored) if promise.real <= 0]


@pytest.mark.parametrize("stored", [stored for stored in STORED if stored.facts["changes"]], ids=str)
def test_what_advice_counts_on_is_saved(stored: Stored) -> None:
    assert not [str(promise) for promise in promises(stored) if promise.at_least > ROUNDED * promise.real]


@pytest.mark.parametrize("name", ["unet.v5e", "resnet.v6e", "vit_linen.v5e", "lm_scanned.v5e"])
def test_a_tpu_program_in_f32_gets_advice_on_bf16_with_a_range_that_a_compile_confirms(name: str) -> None:
    stored = next(stored for stored in STORED if str(stored) == name)
    piece = next(promise for promise in promises(stored) if promise.title == "Compute in bf16")
    assert piece.at_least <= piece.real <= piece.at_most


def promise_of(name: str, title: str) -> Promise:
    stored = next(stored for stored in STORED if str(stored) == name)
    (piece,) = [promise for promise in promises(stored) if promise.title == title]
    return piece


def test_tables_that_are_updated_in_another_layout_are_split_and_may_be_in_place_in_bf16() -> None:
    assert promise_of("clicks.v5e", "Shard params, opt_state over 4 devices").kept
    moments = promise_of("clicks.v5e", "Store the first moments in bf16")
    assert moments.at_least <= moments.real
    assert 0.95 * moments.real <= moments.at_most <= 1.05 * moments.real
