"""The first view of a program: its figures, its headline, and the largest buffers at the peak."""

from __future__ import annotations

from tb_memplugin.analysis.ownership.source_lines import source_lines
from tb_memplugin.analysis.usage.headroom import headroom
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import bytes_by_role, figures, live_rows, share
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.kinds.first_view import encode_first_view, roles_follow
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.recording.sites import most_from
from tb_memplugin.questions.recording.usage import FIRST_BUCKETS, usage_of_program
from tb_memplugin.sizes import bytes_text, counted, percent_text

UNCOUNTED = {Role.OPTIMIZER_STATE, Role.STATE}  # roles that have no plural


def _is_shown(recording: Recording) -> bool:
    return recording.axis is not Axis.TIME and not recording.kind.has_call_graph


@endpoint("memory_viewer", RECORDING, report=InReport(_is_shown))
def first_view(recording: Recording) -> bytes:
    """Return the first view of a program, or of an out-of-memory failure."""
    recording = recording.outline  # the rest takes longer to read; api/rows returns it
    numbers = figures(recording) if recording.out_of_memory is None else oom.figures(recording)
    usage = usage_of_program(recording, 0, recording.length, FIRST_BUCKETS)
    return encode_first_view(recording, headline(recording, outline=roles_follow(recording)), numbers, usage)


def headline(recording: Recording, *, outline: bool = False) -> str:
    """Return by how much the program does not fit, its peak, and the roles and the heaviest line then, in sentences.

    Roles and lines are left out of an outline's headline.
    """
    if recording.out_of_memory is not None:
        return oom.headline(recording)
    top = peak(recording)
    kernels = recording.program.kernels if recording.program is not None else ()
    if not top.bytes and kernels:
        return (
            f"{recording.title} reserves {bytes_text(reserved_bytes(recording))} of {recording.memory} for "
            f"{counted(len(kernels), 'kernel')}; no buffer of the program is in it."
        )
    if not top.bytes:
        return f"{recording.title} uses no {recording.memory}."
    left = headroom(recording).left
    too_much = f"{bytes_text(-left)} more than fits. " if left is not None and left < 0 else ""
    reserved = f"{bytes_text(reserved_bytes(recording))} reserved in {recording.title}, {recording.memory}"
    needs = f"{too_much}Peak {bytes_text(top.bytes)} of {reserved}"
    live = live_rows(recording, top.position)
    if outline or not len(live):  # without live rows, only the total is known
        return f"{needs}."
    parts = [
        f"{percent_text(size, top.bytes)} {_plural(role)}"
        for role, size in bytes_by_role(recording, top.position).items()
        if share(size, top.bytes) >= 0.01 or role is Role.UNKNOWN
    ]
    return f"{needs}: {', '.join(parts)}. {_largest(recording, live)}"


def _largest(recording: Recording, live: I64) -> str:
    """Return the line with the most bytes, and the largest buffer where its line is not known."""
    rows, most = recording.allocations, most_from(recording)
    largest = int(live[0])
    if most and source_lines(recording)[largest]:
        return most
    buffer = f"The largest buffer{' without a line' if most else ''} is {rows.op_name[largest] or rows.name[largest]}"
    return f"{most} {buffer}, {bytes_text(int(rows.charge[largest]))}.".lstrip()


def _plural(role: Role) -> str:
    if role is Role.UNKNOWN:
        return "of unknown role"
    word = role.label
    if role in UNCOUNTED:
        return word
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word}s"
