"""The causes of a change between two recordings: sentences, JSON, and the page's list of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict

from tb_memplugin.analysis.compare.causes import causes_between
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.changes import ChangeCause, ChangeCauseKind, Difference, Explanation
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import RecordingOf
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import agree, counted, signed_bytes

Quote = Callable[[str], str]
REPLICATED = "replicated"
MAX_NAMES = 3


def quoted(name: str) -> str:
    """Quote a name for a terminal."""
    return f"`{name}`"


def cause_text(cause: ChangeCause, quote: Quote = quoted) -> str:
    """Return a cause as a sentence without a full stop. `quote` marks names, which come from files."""
    moved = f", with {signed_bytes(cause.moved_bytes)} of other arrays as the peak moved" if cause.moved_bytes else ""
    return TEXTS[cause.kind](cause, quote) + moved


def difference_text(found: Difference, quote: Quote = quoted) -> str:
    """Return a difference without a known cause."""
    where = f" in {quote(found.function)}" if found.function else ""
    before, after = found.arrays_before, found.arrays_after
    was = "" if before == after else f", {agree(before, 'was', 'were')} {before:,}"
    what = f"{quote(found.path)}{where}, {found.role}{f', {quote(found.shape)}' if found.shape else ''}"
    return f"{what}: {signed_bytes(found.bytes)} ({counted(after, 'array')}{was})"


def _devices(cause: ChangeCause, quote: Quote) -> str:
    return f"the program is partitioned over {counted(int(cause.after), 'device')} now (was {cause.before})"


def _sharding(cause: ChangeCause, quote: Quote) -> str:
    now, was = _sharded(cause.after, quote), _sharded(cause.before, quote)
    return f"{_are(cause, quote)} {now} now (was {was}; {_grown(cause)})"


def _sharded(text: str, quote: Quote) -> str:
    count, _, copies = text.partition(" ")
    if copies == "copies" and count == "no":
        return "split over all devices"
    if copies == "copies" and count.isdecimal():
        return f"the same on {counted(int(count), 'device')}"
    if text == REPLICATED:
        return text
    dimensions = [(axis, at) for at, axis in enumerate(text.split(",")) if axis != "-"]
    return "sharded over " + " and ".join(f"{quote(axis)} in dimension {at}" for axis, at in dimensions)


def _dtype(cause: ChangeCause, quote: Quote) -> str:
    now, was = quote(cause.after), quote(cause.before)
    if cause.names:
        return f"{_are(cause, quote)} {now} now (was {was}; {_grown(cause)})"
    such = f"{counted(cause.arrays, 'array')} such as" if cause.arrays > 1 else "array"
    verb, past = agree(cause.arrays, "is", "are"), agree(cause.arrays, "was", "were")
    return f"{such} {quote(cause.example)} {verb} {now} now ({past} {was}, {signed_bytes(cause.bytes)})"


def _shape(cause: ChangeCause, quote: Quote) -> str:
    if not cause.names:
        such, was = f"arrays such as {quote(cause.example)} are {quote(cause.after)} now", quote(cause.before)
        return f"{such} (were {was}; with all that changed alike, {signed_bytes(cause.bytes)})"
    word = "input" if cause.role == "input" else "argument"
    if not cause.after.isdecimal():
        return f"{_are(cause, quote, word)} {quote(cause.after)} now (was {quote(cause.before)}; {_grown(cause)})"
    dimension = "a dimension" if cause.dimension is None else f"dimension {cause.dimension}"
    of = f"{dimension} of {word}{agree(len(cause.names), '', 's')} {_names(cause, quote)}"
    return f"{of} is {cause.after} now (was {cause.before}; {_grown(cause)})"


def _memory(cause: ChangeCause, quote: Quote) -> str:
    now, was = (quote(cause.after), "another memory") if cause.after else ("another memory", quote(cause.before))
    return f"{_are(cause, quote)} in {now} now (was in {was}; {_size(cause, quote)})"


def _microbatches(cause: ChangeCause, quote: Quote) -> str:
    number = int(cause.after)
    now = "at once now" if number == 1 else f"in {number:,} microbatches now"
    was = "at once" if cause.before == "1" else f"in {int(cause.before):,}"
    return f"the gradient is computed {now} (was {was}, {signed_bytes(cause.bytes)})"


def _layers(cause: ChangeCause, quote: Quote) -> str:
    layers = counted(int(cause.after), "layer")
    verb = agree(int(cause.after), "is", "are")
    return f"there {verb} {layers} {_names(cause, quote)} now ({cause.before} before, {signed_bytes(cause.bytes)})"


def _saved(cause: ChangeCause, quote: Quote) -> str:
    each, rest = divmod(abs(cause.arrays), cause.layers)
    per_layer = cause.layers > 1 and not rest
    number = each if per_layer else abs(cause.arrays)
    more = f"{'one' if number == 1 else f'{number:,}'} {'more' if cause.arrays > 0 else 'fewer'}"
    shape = f"{'' if number == 1 else 'the largest '}{quote(cause.shape)}"
    layers = f", {counted(cause.layers, 'layer')}" if per_layer else ""
    place = _names(cause, quote) or "the forward pass"
    activations = agree(number, "activation", "activations")
    return f"{place} saves {more} {activations} ({shape}{layers}, {signed_bytes(cause.bytes)})"


def _output(cause: ChangeCause, quote: Quote) -> str:
    verb = "new" if cause.kind is ChangeCauseKind.OUTPUT_ADDED else "gone"
    of = "output" if cause.arrays == 1 else f"{cause.arrays:,} outputs, the largest"
    are = agree(cause.arrays, "is", "are")
    return f"{of} {quote(cause.example)} {are} {verb} ({quote(cause.shape)}, {signed_bytes(cause.bytes)})"


def _attention(cause: ChangeCause, quote: Quote) -> str:
    now = f"stored for all {int(cause.after):,} positions at once now" if cause.after else "no longer stored at once"
    return f"attention's scores {quote(cause.example)} are {now} ({_size(cause, quote)})"


def _are(cause: ChangeCause, quote: Quote, word: str = "argument") -> str:
    several = len(cause.names)
    return f"{word}{agree(several, '', 's')} {_names(cause, quote)} {agree(several, 'is', 'are')}"


def _names(cause: ChangeCause, quote: Quote) -> str:
    shown = ", ".join(map(quote, cause.names[:MAX_NAMES]))
    more = len(cause.names) - MAX_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown


def _count(cause: ChangeCause) -> str:
    return counted(cause.arrays, "array")


def _grown(cause: ChangeCause) -> str:
    """Return the number of arrays, and the bytes of these and of what is computed from them."""
    return f"{_count(cause)} and those computed from {agree(cause.arrays, 'it', 'them')}, {signed_bytes(cause.bytes)}"


def _size(cause: ChangeCause, quote: Quote) -> str:
    """Return the shape of the largest array, the number of arrays if there are more, and their bytes."""
    more = "" if cause.arrays == 1 else f"{_count(cause)}, the largest "
    return f"{more}{quote(cause.shape)}, {signed_bytes(cause.bytes)}"


TEXTS: dict[ChangeCauseKind, Callable[[ChangeCause, Quote], str]] = {
    ChangeCauseKind.DEVICES: _devices,
    ChangeCauseKind.ARGUMENT_ADDED: lambda cause, quote: (
        f"argument {_names(cause, quote)} is new ({_size(cause, quote)})"
    ),
    ChangeCauseKind.ARGUMENT_REMOVED: lambda cause, quote: (
        f"argument {_names(cause, quote)} is gone ({_size(cause, quote)})"
    ),
    ChangeCauseKind.MEMORY: _memory,
    ChangeCauseKind.SHARDING: _sharding,
    ChangeCauseKind.DTYPE: _dtype,
    ChangeCauseKind.SHAPE: _shape,
    ChangeCauseKind.MICROBATCHES: _microbatches,
    ChangeCauseKind.NOT_DONATED: lambda cause, quote: (
        f"donated buffer {_names(cause, quote)} is copied now ({_count(cause)}, {signed_bytes(cause.bytes)})"
    ),
    ChangeCauseKind.DONATED: lambda cause, quote: (
        f"buffer {_names(cause, quote)} is donated now ({_count(cause)}, {signed_bytes(cause.bytes)})"
    ),
    ChangeCauseKind.LAYERS: _layers,
    ChangeCauseKind.SAVED: _saved,
    ChangeCauseKind.OUTPUT_ADDED: _output,
    ChangeCauseKind.OUTPUT_REMOVED: _output,
    ChangeCauseKind.ATTENTION: _attention,
    ChangeCauseKind.FUSION_SPLIT: lambda cause, quote: (
        f"{_names(cause, quote)} was split: {quote(cause.example)} is stored now ({_size(cause, quote)})"
    ),
    ChangeCauseKind.FUSED: lambda cause, quote: (
        f"{quote(cause.example)} is computed inside of {_names(cause, quote)} now ({_size(cause, quote)})"
    ),
}


def cause_lines(causes: Sequence[ChangeCause], grown: int, quote: Quote) -> Iterator[str]:
    """Yield causes as sentences, and the rest of the peak's change, so that the lines add up to `grown` bytes."""
    yield from (cause_text(cause, quote) for cause in causes)
    if rest := rest_text(causes, grown):
        yield rest


def rest_text(causes: Sequence[ChangeCause], grown: int) -> str:
    """Return the part of a change that its causes do not explain; empty without causes, or where they add up."""
    rest = grown - sum(cause.bytes for cause in causes)
    return f"the rest, {signed_bytes(rest)}, has no cause of its own" if causes and rest else ""


class NamedCauseJson(TypedDict):
    """A cause of a change, and what it adds to the peak."""

    kind: str
    """`devices`, `argument_added`, `argument_removed`, `memory`, `sharding`, `dtype`, `shape`, `microbatches`,
    `not_donated`, `donated`, `layers`, `saved`, `output_added`, `output_removed`, `attention`, `fusion_split` or
    `fused`."""
    names: list[str]
    """Arguments, the layer, or the fusion; empty for the whole program."""
    bytes: int
    """The bytes that the cause adds to the peak."""
    text: str
    """The cause as a sentence."""


class CauseJson(NamedCauseJson):
    """A cause of a change, with the parts of its sentence."""

    before: str
    """The value that changed, such as a number type; empty where the kind says it."""
    after: str
    """The value now."""
    arrays: int
    """The number of arrays; for saved activations, the growth of their number."""
    layers: int
    """The number of layers that a name with `*` stands for."""
    shape: str
    """The shape of the largest array."""
    example: str
    """The path of the largest array."""
    role: str
    """The role, for an argument."""
    dimension: int | None
    """The dimension of an argument that changed, if it is the same for all."""
    moved_bytes: int
    """Of `bytes`, those of other arrays: an only cause has them where the peak is at another moment now."""


class DifferenceJson(TypedDict):
    """Arrays at the peak whose change has no known cause."""

    path: str
    """Model path and operation."""
    function: str
    """The innermost function of the user's code, where the path has no scopes."""
    role: str
    """The role."""
    shape: str
    """The shape, without layout."""
    arrays_before: int
    """The number of arrays in the baseline."""
    arrays_after: int
    """The number of arrays now."""
    bytes_before: int
    """Their bytes in the baseline."""
    bytes_after: int
    """Their bytes now."""
    text: str
    """The difference in words."""


class ExplanationJson(TypedDict):
    """Causes of a change, and the differences that remain."""

    causes: list[CauseJson]
    """The causes, the largest growth first; their bytes are additive."""
    differences: list[DifferenceJson]
    """The largest changes of arrays at the peak that no cause explains."""
    unexplained_bytes: int
    """The change of the peak that no cause explains."""


def explanation_json(explanation: Explanation) -> ExplanationJson:
    """Return an explanation for JSON."""
    return record(
        ExplanationJson,
        explanation,
        causes=[cause_json(cause) for cause in explanation.causes],
        differences=[record(DifferenceJson, each, text=difference_text(each)) for each in explanation.differences],
    )


def cause_json(cause: ChangeCause) -> CauseJson:
    """Return a cause with the parts of its sentence."""
    return record(CauseJson, cause, text=cause_text(cause))


class ChangeCausesJson(TypedDict):
    """The causes, the largest first; none for recordings that are no programs."""

    causes: list[CauseJson]
    rest: str
    """The part of the change that they do not explain, in words; empty without causes, or where they add up."""


@endpoint("change_causes", RecordingOf("a"), RecordingOf("b"))
def change_causes(a: Recording, b: Recording) -> ChangeCausesJson:
    """Return the changes by programmer or compiler from `a` to `b`, with the bytes that each adds to the peak."""
    causes = causes_between(a, b)
    rest = rest_text(causes, peak(b).bytes - peak(a).bytes)
    return {"causes": [cause_json(cause) for cause in causes], "rest": rest}
