"""The lifetimes that a timeline is first drawn from: those of the complete table, without what may be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.allocator_planes import REAL, Log, recordings_of
from support.payload_decoder import decode
from support.torch_training import Training, recorded

from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.recording.tables import rows
from tb_memplugin.questions.recording.usage import lifetimes

DRAWN = ("role", "size", "charge", "start", "end", "defined", "last_used")


def assert_same(recording: Recording) -> None:
    """Fill in the columns that were left out, as the page does, and compare with the complete tables."""
    meta, found = decode(lifetimes(recording.outline))
    _, whole = decode(rows(recording))
    drawn = found["rows"]
    drawn.setdefault("size", drawn["charge"])
    drawn.setdefault("defined", drawn["start"])
    drawn.setdefault("last_used", [end - 1 for end in drawn["end"]])
    assert drawn == {name: whole["rows"][name] for name in DRAWN}
    unexplained = np.zeros(meta["positions"])
    stretches = found["unexplained"]
    for start, end, bytes_ in zip(stretches["start"], stretches["end"], stretches["bytes"], strict=True):
        assert start < end and bytes_ != 0 and not unexplained[start:end].any()
        unexplained[start:end] = bytes_
    assert unexplained.tolist() == whole["program"]["unexplained"]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
def test_real_profiles(path: Path) -> None:
    for recording in recordings_of(path).values():
        assert_same(recording)


def test_bytes_that_no_row_explains_are_stretches() -> None:
    log = Log()
    for second, (reserved, in_use) in enumerate([(0, 100), (5, 200), (5, 300), (7, 400), (0, 500)]):
        event: dict[str, Any] = {"addr": second + 1, "allocation_bytes": 100, "requested_bytes": 90}
        log.add(False, second * 10**12, index_on_host=0, bytes_allocated=in_use, bytes_reserved=reserved, **event)
    assert_same(log.only())
    _, found = decode(lifetimes(log.only()))
    assert found["unexplained"] == {"start": [1, 3], "end": [3, 4], "bytes": [5, 7]}
    assert found["rows"].keys() == {"role", "charge", "start", "end"}


def test_a_pytorch_snapshot_has_roles_and_rounded_sizes() -> None:
    recording = recorded(Training(3, clears=True))
    assert_same(recording)
    assert any(decode(lifetimes(recording))[1]["rows"]["role"])
