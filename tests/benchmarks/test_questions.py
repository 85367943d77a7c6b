"""An agent's questions: each is answered rightly, within three calls and 8 kB."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.questions.__main__ import ask_all
from benchmarks.questions.questions import QUESTIONS

MOST_CALLS, MOST_BYTES = 3, 8000


@pytest.mark.slow
def test_each_question_is_answered_in_few_calls_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with TemporaryDirectory() as folder:  # with a short name, as answers contain paths
        asked = ask_all(Path(folder))
    assert len(asked) == len(QUESTIONS) >= 20
    assert {one.text: one.found for one in asked} == {one.text: one.known for one in asked}
    over = [one for one in asked if one.calls > MOST_CALLS or one.bytes > MOST_BYTES]
    assert not over
