"""HTML for the output cells of notebooks: no script, no request, and the notebook's own colors of text and lines."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

# The class stands twice in selectors that must prevail over those of notebooks for tables.
STYLE = Markup("""<style>
.tb-memplugin { font: 13px/1.5 system-ui, sans-serif; max-width: 960px; color: inherit }
.tb-memplugin table { border-collapse: collapse; margin: 4px 0 }
.tb-memplugin.tb-memplugin tr { background: none }
.tb-memplugin.tb-memplugin :is(td, th) {
  padding: 2px 12px 2px 0; text-align: left; vertical-align: top; font-size: 13px; max-width: none }
.tb-memplugin.tb-memplugin td:first-child { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.tb-memplugin pre { margin: 4px 0; padding: 6px; border: 1px solid currentColor; border-radius: 4px; color: inherit;
  background: none; white-space: pre-wrap }
.tb-memplugin i { display: inline-block; width: 10px; height: 10px; margin-right: 4px; border-radius: 2px }
.tb-memplugin .bar { display: flex; height: 12px; max-width: 640px; margin-top: 8px; border: 1px solid currentColor }
.tb-memplugin .bar i { width: auto; height: 100%; margin: 0; border-radius: 0 }
.tb-memplugin .roles span { margin-right: 16px; white-space: nowrap }
.tb-memplugin svg { display: block; max-width: 100% }
.tb-memplugin svg text { font-size: 11px; fill: currentColor }
</style>""")


def document(parts: Iterable[Markup]) -> str:
    """Return HTML of parts that an output cell shows."""
    return STYLE + Markup('<div class="tb-memplugin">{}</div>').format(Markup("").join(parts))


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; its first column has figures."""
    cells = Markup("").join(Markup("<th>{}</th>").format(name) for name in heading)
    lines = (Markup("<tr>{}</tr>").format(Markup("").join(map(Markup("<td>{}</td>").format, row))) for row in rows)
    return Markup("<table><tr>{}</tr>{}</table>").format(cells, Markup("").join(lines))


def folded(summary: str, contents: Markup, open_: bool = False) -> Markup:
    """Return contents below a line that opens and closes them."""
    opening = Markup("<details open>") if open_ else Markup("<details>")
    return opening + Markup("<summary>{}</summary>{}</details>").format(summary, contents)
