"""The live memory of a recording at a moment, as terminal and JSON show it: by role and origin, leaks, advice."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from tb_memplugin.analysis.ownership.classification import Classification
from tb_memplugin.analysis.usage.live_bytes import count_stacks, peak
from tb_memplugin.analysis.usage.live_set import breakdown, bytes_by_role, live_rows, share
from tb_memplugin.analysis.usage.steps import step_at
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import FigureJson, OutOfMemoryJson, SiteJson, SummaryJson
from tb_memplugin.questions.asking.selectors import position_of, time_at
from tb_memplugin.questions.kinds import leaks
from tb_memplugin.questions.kinds.first_view import page_figures
from tb_memplugin.questions.kinds.joins import RuntimeToProgramJson, joins
from tb_memplugin.questions.kinds.verdict import moment_text, verdict, verdict_text
from tb_memplugin.questions.kinds.watched import PhasePeakJson, holders_at, phases
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.oom.failed_program import FailedProgramJson, failed_program, named_program
from tb_memplugin.questions.oom.ledger import HolderJson, ledger_of
from tb_memplugin.questions.recording.advice import AdviceListJson, advice
from tb_memplugin.questions.recording.kernels import KernelJson, has_kernels, kernels
from tb_memplugin.questions.recording.sites import site
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.recording.tree import TreeLineJson, weighted_nodes
from tb_memplugin.questions.records import records

MAX_BUFFERS = 20  # listed buffers of a program


class MomentJson(TypedDict):
    """A position of a recording; `bytes` are live there."""

    position: int
    """The position on the axis; -1 is before the first."""
    instruction: NotRequired[str]
    """For a program: the instruction there."""
    op_name: NotRequired[str]
    """The model path of that instruction."""
    time_ns: int | None
    """Its time since the recording started."""
    step: str
    """The step that it is in; empty without steps."""
    bytes: int
    """Live bytes there."""
    peak: bool
    """True at the peak."""


class LiveAmountJson(TypedDict):
    """Some of the live bytes."""

    bytes: int
    """The live bytes."""
    share: float
    """Their share of all live bytes."""


class LiveRoleJson(LiveAmountJson):
    """The live bytes of one role."""

    role: str
    """The role, in lower case."""


class Group(SiteJson, LiveAmountJson):
    """A buffer, or the live allocations of a site."""

    allocations: int


class LiveMemoryJson(TypedDict):
    """The live memory of a recording at one moment."""

    headline: str
    """The answer in a sentence or two."""
    recording: SummaryJson
    """The recording that is explained, with its caveats."""
    at: MomentJson
    """The explained position: the peak, or `--at`."""
    roles: list[LiveRoleJson]
    """The live bytes by role."""
    model: list[TreeLineJson]
    """The heaviest model paths, with repeated layers merged."""
    source: list[TreeLineJson]
    """The heaviest source lines with their callers."""
    function: list[TreeLineJson]
    """The heaviest jitted functions; empty for a program."""
    before: NotRequired[LiveAmountJson]
    """Bytes that were allocated before the recording started."""
    unexplained: NotRequired[LiveAmountJson]
    """Bytes in use that no allocation explains."""
    kernels: NotRequired[list[KernelJson]]
    """For VMEM: the Pallas kernels, the one that takes most first."""
    joins: NotRequired[RuntimeToProgramJson]
    """For an allocator: the compiled programs that own the live allocations."""
    ledger: NotRequired[list[HolderJson]]
    """For a job that is watched, and for an error of an inference engine whose text has its start-up lines: the holders
    of the memory, where they are known."""
    phases: NotRequired[list[PhasePeakJson]]
    """For a job that is watched: the peak of each phase that the script marks."""
    out_of_memory: NotRequired[OutOfMemoryJson]
    """For an error: the request, the free memory, and the cause."""
    failed_program: NotRequired[FailedProgramJson]
    """For an error that names a program without its buffers: its dumps, and the changes with which it fits."""


class ExplainedMoment(LiveMemoryJson):
    """The live memory at a moment, with complete lists. `buffers` are a program's, `groups` those of other kinds."""

    figures: list[FigureJson]
    advice: NotRequired[AdviceListJson]
    buffers: NotRequired[list[Group]]
    buffers_total: NotRequired[int]
    groups: NotRequired[list[Group]]
    stacks: NotRequired[dict[str, int]]
    leaks: NotRequired[leaks.LeaksJson]


def explain(
    recording: Recording,
    at: str | None = None,
    others: Sequence[Recording] = (),
    outcomes: Sequence[Outcome] = (),
    most_buffers: int | None = MAX_BUFFERS,
) -> ExplainedMoment:
    """Explain the peak of a recording, or the moment `at`, in JSON-compatible values.

    Of a program, the `most_buffers` largest buffers are listed; with None, all of them.
    `others` are the other recordings of the logdir; an allocator is matched with the programs of its run and host.
    `outcomes` are the candidates of fits there, or for an error those about its program.
    InputError where `at` is not a moment of the recording.
    """
    position = peak(recording).position if at is None else position_of(recording, at)
    failure = oom.out_of_memory(recording) if recording.kind.is_failure else None
    advised = failure is None and not recording.kind.has_call_graph
    changes = advice(recording, outcomes) if advised else None
    if position == peak(recording).position or recording.kind.is_failure:
        line = " · ".join((*_errors_of(recording, others), verdict_text(verdict(recording, others=others), changes)))
    else:
        line = moment_text(recording, position)
    answer = _everywhere(recording, position, line)
    if failure is not None:
        answer["out_of_memory"] = failure
        if named_program(recording):
            answer["failed_program"] = failed_program(recording, others, outcomes)
        if held := ledger_of(recording, others):
            answer["ledger"] = held
    if changes is not None:
        answer["advice"] = changes
        if has_kernels(recording):
            answer["kernels"] = kernels(recording)["kernels"]
        if recording.axis is not Axis.TIME:
            _add_buffers(answer, recording, position, most_buffers)
            return answer
        own = [other for other in others if (other.run, other.host) == (recording.run, recording.host)]
        programs = [other for other in own if other.kind.has_program]
        if recording.kind.runs_programs and programs:
            answer["joins"] = joins(recording, programs, position)
        if recording.kind.is_sampled:
            answer["ledger"], answer["phases"] = holders_at(recording, position), phases(recording)
        else:  # a curve has no allocations: its snapshots have the lines
            answer["stacks"] = count_stacks(recording)._asdict()
            answer["leaks"] = leaks.findings(recording)
    _add_groups(answer, recording, position)
    return answer


def _errors_of(profile: Recording, others: Sequence[Recording]) -> list[str]:
    """Return what failed when a device profile was taken: an error of its run and host, as `on_oom` saves both."""
    if not profile.kind.has_call_graph:
        return []
    failed = (other for other in others if other.kind.is_failure)
    return [
        oom.sentences(one)[0].removesuffix(".") for one in failed if (one.run, one.host) == (profile.run, profile.host)
    ][:1]


def _everywhere(recording: Recording, position: int, headline: str) -> ExplainedMoment:
    """Return the part that all kinds have; the bytes of each breakdown add up to the total."""
    total = breakdown(recording, position).whole
    return {
        "headline": headline,
        "figures": records(FigureJson, page_figures(recording)),
        "recording": summary(recording),
        "at": moment(recording, position),
        "roles": [
            {"role": role.label, "bytes": size, "share": share(size, total)}
            for role, size in bytes_by_role(recording, position).items()
        ],
        "model": weighted_nodes(recording, Classification.MODEL, position, merge=True),
        "source": weighted_nodes(recording, Classification.SOURCE, position),
        # A program is a single jitted function.
        "function": weighted_nodes(recording, Classification.FUNCTION, position) if recording.axis is Axis.TIME else [],
    }


def _add_buffers(answer: ExplainedMoment, recording: Recording, position: int, most: int | None) -> None:
    total, largest = breakdown(recording, position).whole, live_rows(recording, position)
    sizes = recording.allocations.charge
    answer["buffers"] = [_group(recording, row, 1, int(sizes[row]), total) for row in largest[:most].tolist()]
    answer["buffers_total"] = len(largest)


def _add_groups(answer: ExplainedMoment, recording: Recording, position: int) -> None:
    live = breakdown(recording, position)
    listed = zip(live.row.tolist(), live.allocations.tolist(), live.bytes.tolist(), strict=True)
    answer["groups"] = [_group(recording, *group, live.whole) for group in listed]
    answer["before"] = {"bytes": live.before, "share": share(live.before, live.whole)}
    answer["unexplained"] = {"bytes": live.unexplained, "share": share(live.unexplained, live.whole)}


def _group(recording: Recording, row: int, allocations: int, size: int, total: int) -> Group:
    return {**site(recording, row), "allocations": allocations, "bytes": size, "share": share(size, total)}


def moment(recording: Recording, position: int) -> MomentJson:
    """Describe a position: its time in nanoseconds, its step, its live bytes, and whether it is the peak."""
    found: MomentJson = {
        "position": position,
        "time_ns": time_at(recording, position),
        "step": step_at(recording, position),
        "bytes": breakdown(recording, position).total,
        "peak": position == peak(recording).position,
    }
    if recording.program is not None and 0 <= position < recording.length:
        found["instruction"] = recording.program.name[position]
        found["op_name"] = recording.program.op_name[position]
    return found
