"""The verdict on a recording in one line: its peak and limit, and the largest role with its line, or what is wrong."""

from collections.abc import Iterable
from typing import TypedDict

from tb_memplugin.analysis.advice.model import range_text
from tb_memplugin.analysis.ownership.source_lines import HeaviestLine, base_name, heavy_lines
from tb_memplugin.analysis.usage.headroom import headroom
from tb_memplugin.analysis.usage.live_bytes import Peak, peak, usage
from tb_memplugin.analysis.usage.live_set import breakdown, bytes_by_role
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.selectors import time_at
from tb_memplugin.questions.kinds import leaks, watched
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.recording.advice import AdviceListJson
from tb_memplugin.sizes import bytes_of_text, bytes_text, percent_text

UNCOUNTED = {Role.OPTIMIZER_STATE, Role.STATE}  # roles that have no plural
MIN_PADDING = 0.5  # of the peak: of the stored programs, one that gathers rows of two numbers has more
MIN_SHARE = 0.01  # of the peak; a line with less is not worth naming
# Positions of a program. Roles of a longer one take longer than the rest of its first view, so api/verdict and
# api/rows have them. Roles of a shorter one take milliseconds.
MAX_LENGTH_WITH_ROLES = 20_000


class RecordingVerdictJson(TypedDict):
    """The verdict on a recording. `verdict_text` and the page make the same line of it."""

    used_bytes: int
    """The peak. In on-chip memory that kernels reserve, the bytes that must fit."""
    limit_bytes: int | None
    over_bytes: int
    """By how much the bytes that must fit exceed the limit; 0 where they fit, or where no limit is known."""
    role: str
    """The role with the most bytes at the peak, in the plural; empty where no role is known."""
    role_bytes: int
    line: str
    """The source line with the most bytes of that role, or of all; empty where no line is known."""
    line_bytes: int
    padding_bytes: int
    """The bytes at the peak without data, if they are at least half of it; else 0."""
    alarm: str
    """A failure or a leak, in a sentence; empty without one."""


def roles_follow(recording: Recording) -> bool:
    """Return whether the first view of a recording leaves out roles, which take long to find."""
    return recording.program is not None and recording.length > MAX_LENGTH_WITH_ROLES


def verdict_follows(recording: Recording) -> bool:
    """Return whether the verdict of the first view leaves out lines, leaks or roles."""
    return recording.axis is Axis.TIME or roles_follow(recording)


@endpoint("verdict", RECORDING, report=InReport(verdict_follows))
def complete_verdict(recording: Recording) -> RecordingVerdictJson:
    """Return the verdict with roles, lines and leaks, which take longer to read than the rest of the first view."""
    return verdict(recording)


def verdict(
    recording: Recording, *, outline: bool = False, others: Iterable[Recording] | None = None
) -> RecordingVerdictJson:
    """Return the verdict; that on an outline is without lines and leaks, and without roles where they follow.

    `others` are recordings of the run, of whose snapshots the alarm of a growing curve names a line.
    """
    top, room = peak(recording), headroom(recording)
    role, held = Role.UNKNOWN, 0
    if not (outline and roles_follow(recording)):
        role, held = _largest_role(recording, top.position)
    line = None if outline else _heaviest_line(recording, top.position, role, top.bytes)
    return {
        "used_bytes": top.bytes or room.needed,
        "limit_bytes": room.capacity,
        "over_bytes": max(-(room.left or 0), 0),
        "role": _plural(role) if role else "",
        "role_bytes": min(held, top.bytes),  # rows may exceed the bytes in use
        "line": base_name(line.line) if line is not None else "",
        "line_bytes": line.bytes if line is not None else 0,
        "padding_bytes": _padding(recording, top),
        "alarm": _alarm(recording, others, outline=outline),
    }


def _padding(recording: Recording, top: Peak) -> int:
    """Return the padding of a program at its peak, if it is worth a word."""
    if recording.program is None or not recording.is_main_memory or not top.bytes:
        return 0
    padding = top.bytes - int(usage(recording).requested[top.position])
    return padding if padding >= MIN_PADDING * top.bytes else 0


def _heaviest_line(recording: Recording, position: int, role: Role, used: int) -> HeaviestLine | None:
    """Return the line with the most bytes of a role, of all if that is unknown; None below MIN_SHARE of `used`."""
    lines, _ = heavy_lines(recording, position, 1, role or None)
    return lines[0] if lines and lines[0].bytes >= max(MIN_SHARE * used, 1) else None


def _largest_role(recording: Recording, position: int) -> tuple[Role, int]:
    known = {role: size for role, size in bytes_by_role(recording, position).items() if role is not Role.UNKNOWN}
    return next(iter(known.items()), (Role.UNKNOWN, 0))


def _alarm(recording: Recording, others: Iterable[Recording] | None, *, outline: bool) -> str:
    if recording.kind.is_failure:
        return oom.headline(recording)
    if recording.kind.is_sampled:
        return watched.growth_sentence(recording, others).rstrip(".")
    failure = recording.out_of_memory
    if failure is not None and failure.asked is not None:
        free = f", {bytes_text(failure.free)} free" if failure.free is not None else ""
        return f"Out of memory: {bytes_text(failure.asked)} requested{free}"
    return leaks.headline(recording).rstrip(".") if recording.axis is Axis.TIME and not outline else ""


def _plural(role: Role) -> str:
    word = role.label
    if role in UNCOUNTED:
        return word
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word}s"


def best_text(found: AdviceListJson) -> str:
    """Return the best change: the set with which the program fits, else what saves most; empty without advice."""
    if found["fits_with"] is not None:
        needed = found["fits_with"]
        titles = " + ".join(found["advice"][number]["title"] for number in needed["pieces"])
        size = f"{bytes_text(needed['after_bytes'], 4)} of {bytes_text(found['limit_bytes'], 4)}"
        return f"{'fits with' if needed['fits'] else 'does not fit even with'}: {titles}: {size}"
    if not found["advice"]:
        return ""
    best = found["advice"][0]
    saving = range_text(-best["saving_bytes"], -best["saving_at_most_bytes"])
    return f"best: {best['title']} {saving}{' compiled' if best['evidence'] == 'compiled' else ''}"


def moment_text(recording: Recording, position: int) -> str:
    """Return what is live at a moment other than the peak as a line. Alarms and advice are about the peak."""
    used, limit, time = breakdown(recording, position).total, headroom(recording).capacity, time_at(recording, position)
    role, held = _largest_role(recording, position)
    line = _heaviest_line(recording, position, role, used)
    place, largest = base_name(line.line) if line is not None else "", ""
    if role:
        largest = f"{_plural(role)} {percent_text(min(held, used), used)}{place and f', {place}'}"
    elif place:
        largest = f"most from {place}"
    when = f"At #{position}" if position >= 0 else "Before the first event"
    parts = [
        f"{when}{f', {time / 1e9:.6f} s' if time is not None else ''}",
        bytes_of_text(used, limit) if limit else f"{bytes_text(used)} live",
        largest,
        f"the peak is {bytes_text(peak(recording).bytes)}",
    ]
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def verdict_text(found: RecordingVerdictJson, advised: AdviceListJson | None = None) -> str:
    """Return the verdict as a line, with the best change of `advised`."""
    used, limit = found["used_bytes"], found["limit_bytes"]
    usage = bytes_of_text(used, limit) if limit else f"Peak {bytes_text(used)}"
    line = found["line"]
    if found["alarm"]:
        parts = [found["alarm"]]
    elif found["over_bytes"]:
        parts = [f"{bytes_text(found['over_bytes'])} over the limit of {bytes_text(limit)}"]
    elif found["role"]:
        parts = [usage, f"{found['role']} {percent_text(found['role_bytes'], used)}{line and f', {line}'}"]
    else:
        parts = [usage, line and f"most from {line}, {bytes_text(found['line_bytes'])}"]
    if padding := found["padding_bytes"] if not found["alarm"] else 0:
        parts.append(f"padding {percent_text(padding, used)}")
    return " \N{MIDDLE DOT} ".join(filter(None, [*parts, best_text(advised) if advised is not None else ""]))
