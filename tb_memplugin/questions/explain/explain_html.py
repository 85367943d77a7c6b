"""The explanation of a peak as HTML for notebooks: verdict, curve, roles, advice and buffers; no script, no request.

Colors of text and lines are those of the notebook, so that it is as dark or as light as its surroundings.
"""

from collections.abc import Sequence

from markupsafe import Markup

from tb_memplugin.analysis.usage.live_bytes import buckets
from tb_memplugin.analysis.usage.live_bytes import usage as usage_of
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.html import folded, table
from tb_memplugin.questions.explain.explain import ExplainedMoment, explain
from tb_memplugin.questions.recording.advice import AdviceJson, fits_with_text, saving_line
from tb_memplugin.questions.recording.columns import ROLE_COLORS
from tb_memplugin.sizes import bytes_text, percent_text

MAX_ROWS = 10  # of a table
WIDTH, HEIGHT = 640, 120  # of the curve, in pixels
MIN_ROLE = 200  # roles below 1/200 of the peak would be parts of the bar that cannot be seen
MARGIN = 1.05  # the curve's axis ends this much above the largest figure


def explanation(recording: Recording, others: Sequence[Recording] = ()) -> Markup:
    """Return the explanation of a recording's peak; `others` as for `explain`."""
    answer = explain(recording, None, others)
    name = f"{recording.title}, {recording.memory}" if recording.kind.has_program else recording.memory
    parts = [Markup("<p>{}: <b>{}</b></p>").format(name, answer["headline"])]
    if recording.axis is not Axis.INSTANT:
        parts.append(_curve(recording))
    if answer["at"]["bytes"]:
        parts += [_roles(recording, answer), _advice(answer), _rows(answer)]
    return Markup("").join(parts)


def _curve(recording: Recording) -> Markup:
    """Return the live bytes over the recording as a picture, with its limit where the curve comes near it."""
    found = buckets(usage_of(recording), 0, recording.length, WIDTH)
    highest = int(found.live_max.max(initial=1))
    limit = recording.capacity if recording.capacity and recording.capacity <= 2 * highest else None
    top = MARGIN * max(highest, limit or 0, 1)
    x = found.position * (WIDTH / max(recording.length, 1))
    y = HEIGHT - found.live_max * (HEIGHT / top)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    area = f"0,{HEIGHT} {points} {WIDTH},{y[-1] if len(y) else HEIGHT:.1f} {WIDTH},{HEIGHT}"
    lines = [(highest, "peak"), *([(limit, "limit")] if limit else [])]
    marks = (
        Markup(
            '<line x1="0" x2="{}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>'
            '<text x="4" y="{text:.1f}">{} {}</text>'
        ).format(WIDTH, name, bytes_text(size), y=HEIGHT - size * HEIGHT / top, text=HEIGHT - size * HEIGHT / top + 12)
        for size, name in lines
    )
    return Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="Live bytes">'
        '<polygon points="{}" fill="#2f8fd0" fill-opacity="0.35" stroke="#2f8fd0"/>{}</svg>'
    ).format(area, Markup("").join(marks), w=WIDTH, h=HEIGHT)


def _roles(recording: Recording, answer: ExplainedMoment) -> Markup:
    """Return a bar of the roles at the peak in proportion of the limit, or of the peak without one, and its legend."""
    live = answer["at"]["bytes"]
    whole = max(recording.capacity or live, live)
    colors = {role.label: light for role, (light, _) in zip(Role, ROLE_COLORS, strict=True)}
    named = [(role["role"], role["bytes"], colors.get(role["role"], colors["unknown"])) for role in answer["roles"]]
    shown = [(role, size, color) for role, size, color in named if size * MIN_ROLE >= live]
    if [role for role, _, _ in shown] == [Role.UNKNOWN.label]:
        return Markup("")
    bar = (
        Markup('<i style="width:{:.2f}%;background:#{:06x}"></i>').format(100 * size / whole, color)
        for _, size, color in shown
    )
    legend = (
        Markup('<span><i style="background:#{:06x}"></i>{} {} {}</span>').format(
            color, role, bytes_text(size), percent_text(size, live)
        )
        for role, size, color in shown
    )
    return Markup('<div class="bar">{}</div><p class="roles">{}</p>').format(
        Markup("").join(bar), Markup("").join(legend)
    )


def _advice(answer: ExplainedMoment) -> Markup:
    found = answer.get("advice")
    if found is None or not found["advice"]:
        return Markup("")
    first = Markup("<p>{}</p>").format(fits_with_text(found)) if found["fits_with"] is not None else Markup("")
    rows = (
        (saving_line(piece), folded(piece["title"], _reason(piece)), piece["cost"])
        for piece in found["advice"][:MAX_ROWS]
    )
    return folded("What lowers the peak", first + table(["saving", "change", "cost"], rows), open_=True)


def _reason(piece: AdviceJson) -> Markup:
    code = Markup("<pre>{}</pre>").format(piece["change"]) if piece["change"] else Markup("")
    return Markup("{}{}").format(piece["sentence"], code)


def _rows(answer: ExplainedMoment) -> Markup:
    """Return the largest buffers of a program, or the allocations of other recordings by site."""
    if "buffers" in answer:
        cells = ((bytes_text(row["bytes"]), row["op_name"] or row["name"], row["shape"]) for row in answer["buffers"])
        rows = table(["bytes", "buffer", "shape"], list(cells)[:MAX_ROWS])
        return folded("Largest buffers at the peak", rows)
    groups = answer.get("groups", [])[:MAX_ROWS]
    sites = ((bytes_text(one["bytes"]), one["site"], f"{one['allocations']:,}") for one in groups)
    return folded("Largest sites at the peak", table(["bytes", "site", "count"], sites)) if groups else Markup("")
