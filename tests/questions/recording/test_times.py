"""The table of the times of a program's instructions."""

from __future__ import annotations

from support.payload_decoder import decode
from support.servers import DEMO

from tb_memplugin.analysis.step_time import Bound
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.questions.recording.times import time_tables


def test_an_instruction_without_time_is_bound_by_nothing() -> None:
    recording = next(one for one in listing_of_path(str(DEMO / "v5e_train_step")).recordings if one.memory == "HBM")
    positions = decode(time_tables(recording.load()))[1]["positions"]
    times = list(zip(positions["bound"], positions["estimated"], strict=True))
    assert {text for text, seconds in times if seconds} <= {bound.label for bound in Bound}
    assert {text for text, seconds in times if not seconds} == {""}
