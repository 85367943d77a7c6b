"""The cost of advice in time, against steps that ran on an H100 with and without the change, and rules that follow."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.servers import DEMO

from tb_memplugin.analysis.advice import Advice, AdviceKind, Cost, advise
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import ACCELERATORS, with_speed
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import InstructionTimes
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.recording.advice import advice, lines
from tb_memplugin.readers.hlo import read_hlo

H100 = Path(__file__).parents[2] / "data" / "h100"
SECONDS = {each["name"]: each.get("seconds") for each in json.loads((H100 / "programs.json").read_text())["programs"]}


def on_h100(name: str) -> Recording:
    data = gzip.decompress((H100 / f"{name}.hlo.pb.gz").read_bytes())
    return with_speed([read_hlo(data, source=name)[0]], ACCELERATORS["h100"].speed)[0]


def piece(recording: Recording, kind: AdviceKind) -> Advice:
    return next(one for one in advise(recording) if one.kind is kind)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("transformer_batch-16", "transformer_batch-16_remat-full"),
        ("resnet_batch-256", "resnet_batch-256_remat-True"),
    ],
)
def test_rematerialization_took_as_much_longer_as_the_range_says(name: str, changed: str) -> None:
    """The transformer was faster with it: reading the stacks of its scan takes longer than computing them again."""
    longer = piece(on_h100(name), AdviceKind.REMATERIALIZATION).longer
    assert longer is not None and longer.least < SECONDS[changed] / SECONDS[name] - 1 < longer.most


def test_microbatches_cost_little_on_one_device() -> None:
    """They took 5.7 % longer on an H100; what smaller matrix products lose there is not simulated."""
    longer = piece(on_h100("transformer_batch-16"), AdviceKind.MICROBATCHING).longer
    took = SECONDS["transformer_batch-16_microbatches-2"] / SECONDS["transformer_batch-16"] - 1
    assert longer is not None and longer.least == 0 < longer.most < took < longer.most + 0.05


def test_copies_to_the_host_and_back_take_as_long_as_their_bytes() -> None:
    recording = on_h100("transformer_batch-16")
    found = piece(recording, AdviceKind.OFFLOAD)
    assert found.longer is not None and found.longer.least == found.longer.most
    assert found.longer.most == pytest.approx(2 * found.bytes / 50e9 / 0.1514, rel=0.01)


def test_a_free_change_comes_before_a_larger_one_that_costs_much() -> None:
    recording = next(
        one for one in listing_of_path(str(DEMO / "v5e_train_step")).recordings if one.program and one.is_main_memory
    )
    pieces = advise(recording)
    assert pieces[0].kind is AdviceKind.DONATION and pieces[-1].kind is AdviceKind.OFFLOAD
    assert pieces[0].saving_bytes < pieces[-1].saving_bytes and pieces[0].cost is Cost.NONE
    said = "\n".join(lines(advice(recording)))
    assert "Cost: none." in said and "longer (simulated, estimated)." in said


def test_without_the_speed_of_the_device_the_price_is_not_known() -> None:
    recording = on_h100("transformer_batch-16")
    assert recording.program is not None
    unknown = replace(recording, program=replace(recording.program, speed=None))
    found = piece(unknown, AdviceKind.REMATERIALIZATION)
    assert found.longer is None and found.lost_time == 0.1


def test_a_price_needs_no_times_of_the_profile() -> None:
    """They may be damaged, and reading them takes long."""

    def damaged() -> InstructionTimes:
        raise InputError("the times of a profile are damaged", "a.xplane.pb", "profile again")

    recording = on_h100("transformer_batch-16")
    assert recording.program is not None
    broken = replace(recording, program=replace(recording.program, measured=Lazy(damaged)))
    assert piece(broken, AdviceKind.OFFLOAD).longer == piece(recording, AdviceKind.OFFLOAD).longer
