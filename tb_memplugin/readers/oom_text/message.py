"""The declaration of a kind of message, and its reading: a pattern whose named groups are figures and names.

In a pattern, `{asked}` is a size with its unit, and `{asked#}` a number of bytes or of something else. Their names are
the fields of OutOfMemory, or names of the message's own. `(?P<program>...)` is a name. A space is any white space.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from string import Formatter
from typing import Any

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import BLOCK_CHARS, Failure, last_matches
from tb_memplugin.readers.oom_text.normalize import NormalizedText
from tb_memplugin.sizes import MAX_PRINTED, PRINTED, bytes_text, printed_size

FIGURES = ("asked", "free", "largest_free", "capacity", "in_use", "exceeded")
NUMBER = re.compile(r"\{([a-z_]{1,20})(#?)\}")
COUNT = r"(?<!\d)\d{1,3}(?:,\d{3}){1,6}|(?<!\d)\d{1,19}"
# Not the rest of a number that a line break divides, which is whole in the squeezed text.
SIZE = r"(?<![\d.]\n)(?<!\n\.)" + PRINTED.replace(r"\s?", r"\s{0,8}")
TOKEN = re.compile(
    r"\((?:\?(?:P<\w{1,40}>|<?[=!]|[a-z]{0,4}[:)]))?|\\.|\[(?:\\.|[^\[\]\\]){1,80}\]|\{[^{}]{0,40}\}|.", re.DOTALL
)
NAME_CHARS = 400  # of a name that is shorter without the white space after it
MESSAGE_CHARS = 3000  # of figures and names in a message without a list


class PrintedFigure(int):
    """Bytes or a count of a text. Sentences print it as bytes, and with a format, as `{tokens:,}`, as a number."""

    def __format__(self, form: str) -> str:
        return int.__format__(self, form) if form else bytes_text(int(self))


Values = dict[str, PrintedFigure | str]


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message in a text: its place, its figures and names, and the text that follows it up to the next one."""

    at: int
    values: Values
    block: str

    def figure(self, name: str) -> int | None:
        value = self.values.get(name)
        return int(value) if isinstance(value, int) else None

    def name(self, name: str) -> str:
        return str(self.values.get(name, ""))


@dataclass(frozen=True, slots=True)
class MessageKind:
    """One kind of message. `example` is its test: `reads` are the figures in it, in bytes, and its memory.

    `facts` are patterns of figures that may follow within the message, `before` one of a name that may precede it.
    A sentence of `request`, `reason` or `advice` is used where the text has every figure that it names; without one,
    the general sentences are. `finish` completes the failure with lists, or with figures that follow from others.
    """

    pattern: str
    example: str
    reads: Mapping[str, int | str]
    tool: str  # the layer that writes it; equal layers and sizes mean one failure reported twice
    memory: str = ""  # with names of groups, such as `GPU {device}`
    source: str = ""  # the public thread that the example is from
    phase: OutOfMemoryPhase = OutOfMemoryPhase.RUN
    host: bool = False
    needs: bool = False  # the figure that was asked is all that a program needs, and the bytes of the recording
    vague: bool = False  # without figures: searched only where nothing else is found
    exact: bool = False  # white space is as in the pattern, since the words are too common to be put together
    unless: str = ""  # words that another kind of message has: where they occur, this one is not searched
    facts: tuple[str, ...] = ()
    before: str = ""
    request: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    finish: Callable[[Failure, FoundMessage], Failure] | None = field(default=None, repr=False)

    def patterns(self) -> list[re.Pattern[str]]:
        """Return every pattern, for the test that searches adversarial texts with each."""
        found = [] if self.exact else [squeezed(source) for source in (self.pattern, *self.facts)]
        return [*found, spaced(self.pattern, self.exact), *map(spaced, (*self.facts, self.before))]

    def marks(self) -> list[str]:
        """Return words of which every match contains one; searching them is a hundred times as fast."""
        return [word if self.exact else word.replace(" ", "") for word in marks_of(self.pattern)]

    def find(self, page: NormalizedText) -> Iterator[Failure]:
        """Find the failures of this kind in a text."""
        text, marks = page.text if self.exact else page.squeezed, self.marks()
        if marks and not any(word in text for word in marks):
            return
        if self.unless and self.unless.replace(" ", "") in page.squeezed:
            return
        matches = self._matches(page)
        for (at, end, values), following in zip_longest(matches, matches[1:]):
            limit = following[0] if following else len(page.text)
            block = page.text[end : min(limit, end + BLOCK_CHARS)]
            yield self._failure(page, FoundMessage(at, values, block))

    def _matches(self, page: NormalizedText) -> list[tuple[int, int, Values]]:
        """Find the message in the squeezed text, and read names from the text where it has the same words there."""
        if self.exact:
            exact = last_matches(spaced(self.pattern, True), page.text)
            return [(match.start(), match.end(), values_of(self.pattern, match)) for match in exact]
        found = []
        for match in last_matches(squeezed(self.pattern), page.squeezed):
            at, end = page.place(match.start()), page.place(match.end() - 1) + 1
            values = values_of(self.pattern, match)
            whole = spaced(self.pattern).search(page.text, at, end + NAME_CHARS)
            # A name that ends at white space has run on in the squeezed text.
            values = {k: v for k, v in values.items() if isinstance(v, int) or v in page.text[at:end]}
            if whole is not None and whole.start() < end:
                values = {name: value for name, value in values.items() if isinstance(value, int)}
                at, end, values = whole.start(), whole.end(), {**values, **values_of(self.pattern, whole)}
            found.append((at, end, values))
        return found

    def _failure(self, page: NormalizedText, found: FoundMessage) -> Failure:
        self._add_facts(page, found)
        values = found.values
        figures: dict[str, Any] = {name: found.figure(name) for name in FIGURES}
        said = OutOfMemory(
            **figures, phase=self.phase, host=self.host, wanted_by=found.name("wanted_by"),
            program=found.name("program") if self.needs else "",
        )  # fmt: skip
        failure = Failure(
            found.at, self.tool, self.memory.format_map(defaultdict(str, values)).strip(), said,
            used=said.asked if self.needs else said.in_use, program=found.name("program"), worker=page.worker(found.at),
            caveats=self.caveats,
        )  # fmt: skip
        if self.finish is not None:
            failure = self.finish(failure, found)
        # Figures may be sums of damaged ones.
        too_large = [name for name in FIGURES if (getattr(failure.out_of_memory, name) or 0) > MAX_PRINTED]
        failure = failure.saying(**dict.fromkeys(too_large))
        used = None if failure.used is None or failure.used > MAX_PRINTED else failure.used
        return replace(failure, used=used, out_of_memory=self._in_words(failure.out_of_memory, values))

    def _add_facts(self, page: NormalizedText, found: FoundMessage) -> None:
        """Add the figures and names that the text around the message has."""
        near = found.block[:MESSAGE_CHARS]
        for fact in self.facts:
            match = spaced(fact).search(near)
            if whole := match or squeezed(fact).search("".join(near.split())):
                known = values_of(fact, whole)
                new = {name for name in known if match or isinstance(known[name], int)} - found.values.keys()
                found.values.update({name: known[name] for name in new})
        preceding = page.text[max(found.at - MESSAGE_CHARS, 0) : found.at] if self.before else ""
        for match in spaced(self.before).finditer(preceding):
            found.values.update(values_of(self.before, match))

    def _in_words(self, failure: OutOfMemory, values: Values) -> OutOfMemory:
        """Add the sentences of this kind of message, with its figures."""
        figures = {name: PrintedFigure(size) for name in FIGURES if (size := getattr(failure, name)) is not None}
        known: Values = {**values, **figures}
        if failure.asked is not None and (room := failure.capacity if self.needs else failure.free) is not None:
            known["missing"] = PrintedFigure(max(failure.asked - room, 0))
        request, reason, advice = (_filled(texts, known) for texts in (self.request, self.reason, self.advice))
        return replace(failure, request=" ".join(request[:1]), reason=" ".join(reason[:1]), advice=tuple(advice))


def values_of(source: str, match: re.Match[str]) -> Values:
    """Return what the groups of a match mean."""
    numbers = {name for name, _ in NUMBER.findall(source)}
    values: Values = {}
    for name, text in match.groupdict().items():
        if name not in numbers:
            values |= {name: text.strip()} if text else {}
        elif text and (size := printed_size("".join(text.replace(",", "").split()))) is not None:
            values[name] = PrintedFigure(size)
    return values


def _filled(templates: tuple[str, ...], values: Values) -> list[str]:
    """Fill in the templates whose figures are all known."""
    fields = {text: {name for _, name, _, _ in Formatter().parse(text) if name} for text in templates}
    return [text.format_map(values) for text in templates if fields[text] <= values.keys()]


@cache
def spaced(source: str, exact: bool = False) -> re.Pattern[str]:
    """Compile a pattern for a text with white space; an `exact` one has its own."""
    expanded = _expand(source)
    return re.compile(expanded if exact else expanded.replace(" ?", r"\s{0,8}").replace(" ", r"\s{1,8}"))


@cache
def squeezed(source: str) -> re.Pattern[str]:
    """Compile a pattern for a text without white space."""
    return re.compile(_expand(source).replace(" ?", "").replace(" ", ""))


def _expand(source: str) -> str:
    return NUMBER.sub(lambda found: f"(?P<{found[1]}>{COUNT if found[2] else SIZE})", source)


@cache
def marks_of(source: str) -> tuple[str, ...]:
    """Return plain words of which every match of a pattern contains one; none where there are no such words."""
    return _marks_of_choices(TOKEN.findall(source), 0)[0]


def _marks_of_choices(tokens: Sequence[str], at: int) -> tuple[tuple[str, ...], int]:
    """Return the marks of the choices up to the end of a group, and its place."""
    choices = list[tuple[str, ...]]()
    while at < len(tokens) and (not choices or tokens[at] == "|"):
        found, at = _marks_of_sequence(tokens, at + bool(choices))
        choices.append(found)
    return () if () in choices else tuple(dict.fromkeys(word for found in choices for word in found)), at


def _marks_of_sequence(tokens: Sequence[str], at: int) -> tuple[tuple[str, ...], int]:
    """Return the longest marks of a choice, and the place of its end."""
    found, words = list[tuple[str, ...]](), [""]
    while at < len(tokens) and tokens[at] not in ("|", ")"):
        token, at = tokens[at], at + 1
        if token[0] == "(" and token[-1] != ")":
            inner, at = _marks_of_choices(tokens, at)
            at += 1
            may_be_missing = at < len(tokens) and (tokens[at] in "?*" or tokens[at].startswith("{0"))
            if token[-1] != "!" and not may_be_missing:
                found.append(inner)
            words.append("")
        elif (len(token) == 1 and token not in "[]{}?*+^$.") or (len(token) == 2 and not token[1].isalnum()):
            words[-1] += token[-1]
        else:
            if token in "?*" or (token[0] == "{" and NUMBER.match(token) is None):
                words[-1] = words[-1][:-1]  # the character before may be missing
            words.append("")
    found += [(word,) for word in words]
    return max(found, key=_shortest), at


def _shortest(words: Sequence[str]) -> int:
    return min((len(word.replace(" ", "")) for word in words), default=0)
