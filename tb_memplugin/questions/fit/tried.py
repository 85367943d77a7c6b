"""Pieces of advice once carried out: a table for each answer of a fit, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypedDict

from tb_memplugin.analysis.advice.compiled import is_nearly, needed_bytes
from tb_memplugin.model.fit import Knob, OfTorch, Outcome, Tried
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.fit.words import candidate_text, size_text
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text

ESTIMATED = "Estimated only, as each needs a change of your code:"


def tried_lines(tried: Sequence[Tried]) -> Iterator[str]:
    """Yield tables for each answer, and a line for each piece that could not be compiled."""
    if not tried:
        yield from ("", "Nothing to try: no known change would lower the peak.")
    for _, group in groupby(tried, key=lambda one: (one.target, one.knobs)):
        pieces = list(group)
        # A change of the number of microbatches may require another batch, so another piece has the usual one.
        first = next((one for one in pieces if not any(text.startswith("set:") for text in one.changes)), pieces[0])
        found = [one for one in pieces if not one.error]
        compiled, estimated = ([one for one in found if one.is_compiled is wanted] for wanted in (True, False))
        yield ""
        reserved = size_text(first.before.reserved_bytes)
        made = "Traced" if any(text in [*OfTorch] for one in pieces for text in one.changes) else "Compiled"
        yield f"{made} with changes, at {candidate_text(first.before)}, {reserved} reserved:"
        yield from _table(compiled, first) if compiled else ["no change that needs none of your code"]
        if estimated:
            yield ESTIMATED
            yield from _table(estimated, first)
        yield from (f"{one.title}: {one.error}" for one in pieces if one.error)


def compiled_again_lines(recording: Recording, again: Outcome, tried: Sequence[Tried]) -> Iterator[str]:
    """Yield what a program needs once it is compiled or traced again, as it is and with changes."""
    before, now = needed_bytes(recording, again)
    if again.is_traced:
        yield f"Traced as it is, the step has {size_text(now)} live at its peak; the snapshot, {size_text(before)}."
        reason = "the step is not the one of the snapshot: compare its knobs, its GPU and its version of PyTorch"
    else:
        yield f"Compiled again as it is, the program reserves {size_text(now)}; in the dump, {size_text(before)}."
        reason = "another version or other options compiled the dump"
    if not is_nearly(before, now):
        yield f"The estimates stay, as {reason}."
    yield from tried_lines(tried) if tried else ["", "No advice can be compiled without your code."]


def _table(tried: Sequence[Tried], first: Tried) -> Iterator[str]:
    searched = [f"largest {first.searched}"] if first.searched else []
    yield from align([["change", "saves", *searched], *(_row(one, first) for one in tried)], 0)


def _row(one: Tried, first: Tried) -> list[str]:
    about = "" if one.is_compiled else "about "
    at, answer = (dict(outcome.candidate.knobs).get(one.searched) for outcome in (one.before, first.before))
    saves = f"{about}{_saving(one.saving_bytes)}{f' at {at}' if at != answer else ''}"
    return [one.title, saves, *([_value(one, about)] if one.searched else [])]


def _saving(saved: int | None) -> str:
    if saved is None:
        return "unknown"
    return bytes_text(saved, digits=4) if saved >= 0 else f"none: needs {bytes_text(-saved, digits=4)} more"


def _value(one: Tried, about: str) -> str:
    """Return the largest value, or how it changes."""
    if one.new_value is None and one.value is not None:
        return f"below {one.value}"
    reached = f"at least {one.new_value}, the end of the range" if one.at_end else f"{about}{one.new_value or 'none'}"
    return reached.removeprefix("about ") if one.new_value == one.value else f"{one.value or 'none'} → {reached}"


class SearchJson(TypedDict):
    """A search of the largest value of a knob."""

    target: str
    """The target, or the smallest slice that fits."""
    knobs: dict[str, Knob]
    """The values of the knobs that are not searched."""
    vary: str | None
    """The knob that is searched."""


class TriedJson(SearchJson):
    """A piece of advice that was carried out, or estimated where your code must change."""

    title: str
    """The piece of advice; the last one may be all that helped, together."""
    changes: list[str]
    """The changes before compiling; empty where your code must change."""
    compiled: bool
    """True if the figures are those of compiled programs; otherwise they are estimated."""
    at: Knob | None
    """The value of the searched knob at which the bytes are compared."""
    value: Knob | None
    """The largest value that fits without the change."""
    new_value: Knob | None
    """The largest value that fits with it."""
    at_end: bool
    """True where `new_value` is the last one that was searched: a larger one may fit."""
    saving_bytes: int | None
    """The reserved bytes that it saves; where they are estimated, those of the peak."""
    promised_bytes: int
    """The bytes of the peak that the advice expected to save."""
    reserved_bytes: int | None
    """The reserved bytes of the program without the change."""
    peak_bytes: int | None
    """The peak of the program without the change."""
    new_reserved_bytes: int | None
    """The reserved bytes of the program with the change."""
    new_peak_bytes: int | None
    """The peak of the program with the change."""
    run: str | None
    """The run of the program with the change."""
    error: str | None
    """The reason why there is no such program."""


def tried_json(one: Tried) -> TriedJson:
    """Return a piece of advice for JSON."""
    after = one.after
    return record(
        TriedJson,
        one,
        one.before,
        knobs=dict(one.knobs),
        vary=one.searched or None,
        compiled=one.is_compiled,
        at=dict(one.before.candidate.knobs).get(one.searched),
        new_reserved_bytes=after.reserved_bytes if after else None,
        new_peak_bytes=after.peak_bytes if after else None,
        run=(after.run or None) if after else None,
        error=one.error or None,
    )
