"""The check against a baseline as lines for a terminal, and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from tb_memplugin.analysis.usage.live_set import share
from tb_memplugin.model.kinds import Role
from tb_memplugin.questions.compare.baseline import BaselineCheck, CheckedRecording, UnmatchedRecording
from tb_memplugin.questions.compare.baseline_file import write_command
from tb_memplugin.questions.compare.causes import Quote, cause_lines, difference_text, quoted
from tb_memplugin.questions.compare.compare_text import code
from tb_memplugin.sizes import agree, bytes_text, counted, signed_bytes, signed_percent

MOST = 0.8  # a choice: the largest differences follow causes that explain less than this share of a change
MIN_SHARE = 0.1  # a choice: smaller changes of roles, and in the other direction, are left out
MAX_DIFFERENCES = 4
MAX_EXPLAINED = 8  # recordings in Markdown: comments of GitHub have at most 65,536 characters
ROLES = {role.label for role in Role}  # others are names from a damaged file


def lines(answer: BaselineCheck) -> Iterator[str]:
    """Format the check for a terminal. The caller escapes control characters, which names may contain."""
    for checked in sorted(answer.checked, key=lambda checked: checked.status != "above"):
        yield _headline(checked, quoted)
        if checked.status != "within":
            yield from (f"    {text}" for text in _reasons(checked, quoted))
    for unmatched in (*answer.missing, *answer.added):
        yield _unmatched(unmatched, quoted)
    if any(checked.status == "below" for checked in answer.checked):
        yield f"To keep what is less now: `{write_command(answer.baseline)}`"
    yield _count(answer)


def markdown(answer: BaselineCheck) -> Iterator[str]:
    """Format the check as Markdown. Names are set as code, so that they cannot contain other markup."""
    # The GitHub Action finds its own comment about this baseline by the first line.
    digest = blake2b(answer.baseline.encode(errors="replace"), digest_size=8).hexdigest()
    yield f"<!-- tb-memplugin baseline {digest} -->"
    yield f"### Memory: {_count(answer)}"
    yield ""
    if answer.checked:
        yield "| | peak | reserved | change |"
        yield "|---|---:|---:|---:|"
        yield from (_table_row(checked) for checked in answer.checked)
        yield ""
    changed = [checked for checked in answer.checked if checked.status != "within"]
    for checked in sorted(changed, key=lambda checked: checked.status != "above")[:MAX_EXPLAINED]:
        if reasons := list(_reasons(checked, code)):
            yield f"{_headline(checked, code)}"
            yield ""
            yield from (f"- {text}" for text in reasons)
            yield ""
    if len(changed) > MAX_EXPLAINED:
        yield f"- and {counted(len(changed) - MAX_EXPLAINED, 'other recording')} with causes: see `--json`"
    for unmatched in (*answer.missing, *answer.added):
        yield f"- {_unmatched(unmatched, code)}"
    for problem in answer.problems:
        yield f"- {code(problem['file'])}: {code(problem['text'])}"


def _table_row(checked: CheckedRecording) -> str:
    now, before = checked.now, checked.before
    mark = {"above": "**above**", "within": "within", "below": "below"}[checked.status]
    change = _change(before.peak_bytes, now.peak_bytes)
    sizes = bytes_text(now.peak_bytes), bytes_text(now.reserved_bytes)
    return f"| {code(now.name)}, {code(now.memory)} | {sizes[0]} | {sizes[1]} | {change}, {mark} |"


def _headline(checked: CheckedRecording, quote: Quote) -> str:
    before, now = checked.before, checked.now
    name = f"{quote(now.name)}, {quote(now.memory)}"
    if before.name != now.name:
        name += f" (was {quote(before.name)})"
    figures = [f"peak {bytes_text(now.peak_bytes)} ({_change(before.peak_bytes, now.peak_bytes)})"]
    if before.reserved_bytes is not None and now.reserved_bytes is not None:
        change = _change(before.reserved_bytes, now.reserved_bytes)
        figures.append(f"reserved {bytes_text(now.reserved_bytes)} ({change})")
    verdict = {
        "above": f"above the baseline: {_listed([*checked.exceeded, *(f'role {r}' for r in checked.exceeded_roles)])}",
        "below": "below the baseline",
        "within": "within the tolerance",
    }[checked.status]
    return f"{name}: {', '.join(figures)}, {verdict}"


def _listed(texts: Sequence[str]) -> str:
    """Join texts as in a sentence: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _change(before: int, now: int) -> str:
    if before == now:
        return "unchanged"
    return f"{signed_bytes(now - before)}, {signed_percent(share(now - before, before))}" if before else "new"


def _reasons(checked: CheckedRecording, quote: Quote) -> Iterator[str]:
    """Yield the causes of a change, the largest first, and the largest differences where causes explain too little."""
    grown = checked.now.peak_bytes - checked.before.peak_bytes
    yield from _roles(checked)
    direction = -1 if checked.status == "below" else 1
    least = MIN_SHARE * abs(grown)
    causes = sorted(checked.explanation.causes, key=lambda cause: -direction * cause.bytes)
    shown = [cause for cause in causes if direction * cause.bytes >= 0 or abs(cause.bytes) > least]
    yield from cause_lines(shown, grown, quote)
    explained = sum(cause.bytes for cause in shown)
    if direction * explained < MOST * direction * (grown if checked.exceeded else _grown_role(checked) or grown):
        found = "Besides, the largest differences are" if shown else "No cause found. The largest differences are"
        rest = [each for each in checked.explanation.differences if direction * each.bytes > 0]
        if rest:
            yield f"{found}:"
            yield from (difference_text(each, quote) for each in rest[:MAX_DIFFERENCES])
        elif not shown:
            yield "No cause found: many small changes."
    before, now = checked.before.reserved_bytes, checked.now.reserved_bytes
    if before is not None and now is not None and checked.exceeded == ["reserved"]:
        rest_bytes = signed_bytes(now - before - grown)
        yield f"{rest_bytes} of reserved memory is not live at the peak: the compiler placed arrays differently"


def _roles(checked: CheckedRecording) -> Iterator[str]:
    """Yield a line with the roles that changed, the largest first."""
    before, now = checked.before.roles_bytes, checked.now.roles_bytes
    change = {role: now.get(role, 0) - before.get(role, 0) for role in {**now, **before} if role in ROLES}
    least = MIN_SHARE * max(map(abs, change.values()), default=0)
    ordered = sorted(change.items(), key=lambda found: -abs(found[1]))
    texts = [f"{role} {signed_bytes(size)}" for role, size in ordered if abs(size) > least]
    if texts:
        yield f"By role: {', '.join(texts)}"


def _grown_role(checked: CheckedRecording) -> int:
    """Return the growth of the role that exceeds the tolerance the most; 0 where none does."""
    before, now = checked.before.roles_bytes, checked.now.roles_bytes
    return max((now[role] - before.get(role, 0) for role in checked.exceeded_roles), default=0)


def _unmatched(found: UnmatchedRecording, quote: Quote) -> str:
    name = f"{quote(found.facts.name)}, {quote(found.facts.memory)}"
    return f"{name}, peak {bytes_text(found.facts.peak_bytes)}, {found.text}"


def _count(answer: BaselineCheck) -> str:
    total, broken = len(answer.checked), sum(checked.status == "above" for checked in answer.checked)
    if not broken:
        return f"{counted(total, 'recording')} within {answer.tolerance.text} of the baseline"
    verb = agree(broken, "is", "are")
    return f"{broken:,} of {counted(total, 'recording')} {verb} more than {answer.tolerance.text} above the baseline"
