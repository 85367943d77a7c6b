"""Names of the programs in a profile, and lookup of each by name and id."""

from __future__ import annotations

import pytest
from support.hand_built import MIB, two_halves

from tb_memplugin.protos.xplane_pb2 import XEventMetadata, XSpace
from tb_memplugin.readers import open_file
from tb_memplugin.readers.common.part import FilePart

HLO, PROGRAM_ID = 1, 2  # of stat metadata


def program() -> bytes:
    made, first, second = two_halves()
    made.allocation((first, 0), (second, 3 * MIB), size=6 * MIB)
    return made.data


class Profile:
    def __init__(self, hlo_stat: bytes = b"Hlo Proto", plane: bytes = b"/host:metadata") -> None:
        self.space = XSpace()
        self.space.planes.add(name=b"/device:TPU:0")
        self.plane = self.space.planes.add(name=plane)
        self.plane.stat_metadata[HLO].name = hlo_stat
        self.plane.stat_metadata[PROGRAM_ID].name = b"program_id"

    def add(self, event_id: int, name: bytes) -> XEventMetadata:
        event = self.plane.event_metadata[event_id]
        event.id, event.name = event_id, name
        event.stats.add(metadata_id=HLO, bytes_value=program())
        return event

    def parts(self) -> list[FilePart]:
        parts = open_file(self.space.SerializeToString(), "/logs/host.xplane.pb")
        return [part for part in parts if part.kind == "program"]


@pytest.mark.parametrize("spelling", [b"Hlo Proto", b"HLO Proto"])
def test_both_spellings_of_the_stat(spelling: bytes) -> None:
    profile = Profile(spelling)
    profile.add(1, b"jit_step(34)")
    (part,) = profile.parts()
    (recording,) = part.read()
    assert part.title == recording.title == "jit_step(34)"
    assert recording.regions.size.tolist() == [6 * MIB]


def test_ids_are_exact() -> None:
    profile = Profile()
    for event, (name, number) in enumerate([(b"jit_step", 34), (b"jit_eval", 3), (b"jit_init", 2**64 - 1)]):
        profile.add(event, name).stats.add(metadata_id=PROGRAM_ID, uint64_value=number)
    assert {part.title for part in profile.parts()} == {"jit_step(34)", "jit_eval(3)", f"jit_init({2**64 - 1})"}


def test_the_id_is_a_stat_else_in_the_name_else_the_event_s() -> None:
    profile = Profile()
    profile.add(5, b"jit_all(7)").stats.add(metadata_id=PROGRAM_ID, uint64_value=9)
    profile.add(6, b"jit_name(8)")
    profile.add(-1, b"jit_event")
    assert {part.title for part in profile.parts()} == {"jit_all(9)", "jit_name(8)", f"jit_event({2**64 - 1})"}


def test_other_stats_and_other_planes_carry_no_program() -> None:
    elsewhere = Profile(plane=b"/host:CPU")
    elsewhere.add(1, b"jit_step(1)")
    other = Profile(hlo_stat=b"Symbol Map")
    other.add(1, b"jit_step(1)")
    assert [part for part in elsewhere.parts() + other.parts() if part.kind == "program"] == []


def test_a_damaged_program_costs_itself_alone() -> None:
    profile = Profile()
    profile.add(1, b"jit_bad(1)").stats[0].bytes_value = b"\x0a\xff\xff"
    profile.add(2, b"jit_good(2)")
    good, bad = sorted(profile.parts(), key=lambda part: part.title, reverse=True)
    assert good.read()
    with pytest.raises(Exception, match=r"host\.xplane\.pb") as error:
        bad.read()
    assert type(error.value).__name__ == "InputError"


def test_a_name_that_is_not_utf8_is_shown_with_a_mark() -> None:
    profile = Profile()
    profile.add(1, b"jit_caf\xe9(1)")
    (part,) = profile.parts()
    assert part.title == "jit_caf\ufffd(1)"
