"""What would help: as JSON, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.figures import share
from tb_memplugin.analysis.usage import peak
from tb_memplugin.recording import Recording
from tb_memplugin.sizes import bytes_text

ROWS_LISTED = 200
LINES_LISTED = 5  # in the terminal


def advice(recording: Recording) -> dict[str, Any]:
    """The answer of api/advice: pieces by what they save, each with the largest rows that it rests on."""
    return {
        "peak_bytes": peak(recording).bytes,
        "advice": [
            {
                "kind": piece.kind.value,
                "title": piece.title,
                "sentence": piece.sentence,
                "change": piece.change,
                "bytes": piece.bytes,
                "saving_bytes": piece.saving_bytes,
                "new_peak_bytes": piece.new_peak_bytes,
                "rows": piece.rows[:ROWS_LISTED].tolist(),
            }
            for piece in advise(recording.complete)
        ],
    }


def advice_lines(recording: Recording) -> Iterator[str]:
    """The same for people, with what saves most first; nothing where nothing would help."""
    answer = advice(recording)
    yield from lines(answer["advice"], answer["peak_bytes"])


def lines(pieces: Sequence[dict[str, Any]], peak_bytes: int) -> Iterator[str]:
    """Of the pieces of `advice`. Names are as the file has them: the caller keeps control characters off."""
    if not pieces:
        return
    yield "What would help, each on its own:"
    for piece in pieces[:LINES_LISTED]:
        saved = piece["saving_bytes"]
        yield ""
        yield f"  -{bytes_text(saved)} ({share(saved, peak_bytes):.0%})  {piece['title']}"
        yield f"      {piece['sentence']}"
        yield f"      {piece['change']}"
    if len(pieces) > LINES_LISTED:
        yield ""
        yield f"and {len(pieces) - LINES_LISTED} more: --json lists them"
