"""Tables of docs/json.md, generated from the JSON Schemas of the answers and from the columns of allocations.

    python -m tools.generate_json_docs

Keys, types and meanings are those of the TypedDicts: the meaning of a key is the text after its field. Keys are in the
order of the page, new ones last. The text between the tables, and what an object extends ("All keys of"), is written by
hand. A test fails while the page differs from what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tb_memplugin.model.caveats import CaveatCode, NoEventsCode
from tb_memplugin.model.kinds import Labeled
from tb_memplugin.questions.recording.columns import EXPORTED
from tools.generate_schemas import ANSWERS, schema_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "json.md"
SECTION = re.compile(r"^##+ (.+)\n(?:(?!##).*\n)*", re.M)
ROWS = re.compile(r"(?<=\|---\|\n)((?:\|.*\n)+)")
CELLS = re.compile(r"^\| `([^`]+)` \| (?:(.*?) \| )?(.*) \|$", re.M)


def generate() -> str:
    """Return the text of the page, with all tables as they should be."""
    sections = {found[1]: found[0] for found in SECTION.finditer(PAGE.read_text())}
    wanted: dict[str, str] = {"Columns of exported tables": _columns(), "Caveats": _codes(CaveatCode)}
    wanted["Reasons for no events"] = _codes(NoEventsCode)
    for name in ANSWERS:
        schema = schema_of(name)
        heading = "Errors" if name == "error" else f"{name.replace('-', ' --')} --json"
        for of_object, rows in _objects(schema, heading, schema["$defs"], sections):
            wanted.setdefault(of_object, rows)
    text = PAGE.read_text()
    for heading, rows in wanted.items():
        before, _, after = re.split(ROWS, sections[heading], maxsplit=1)
        text = text.replace(sections[heading], f"{before}{rows}{after}")
    return text


def _objects(schema: Any, heading: str, definitions: Any, sections: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the heading of an object and of each object below it, with the rows of its table."""
    seen = dict[str, Any]()
    waiting = [(heading, schema)]
    while waiting:
        heading, schema = waiting.pop()
        if heading in seen:
            continue
        seen[heading] = schema
        page = {key.rstrip("?"): kind or "" for key, kind, _ in CELLS.findall(sections[heading])}
        extended = "All keys of [" in sections[heading]
        rows = []
        ordered = dict.fromkeys(key for key in [*page, *schema["properties"]] if key in schema["properties"])
        for key in ordered:
            found = schema["properties"][key]
            if key == "omitted" or (extended and key not in page):
                continue
            name, link = _reference(found), page.get(key, "")
            part = link.partition("[")[2].partition("]")[0] or name
            kind = _kind(found, f"[{part}](#{part.lower().replace(' ', '-')})")
            optional = "" if key in schema["required"] else "?"
            rows.append(f"| `{key}{optional}` | {kind} | {_meaning(heading, key, found)} |\n")
            if name:
                waiting.append((part, definitions[name]))
        yield heading, "".join(rows)


def _reference(found: Any) -> str:
    """Return the name of the object that a value is or contains; empty for none."""
    names = re.findall(r"#/\$defs/(\w+)", str(found))
    return names[0] if names else ""


def _kind(found: Any, link: str) -> str:
    """Return a type in words, as in `list of integer or null`."""
    if "$ref" in found:
        return link
    if "anyOf" in found:
        return " or ".join(_kind(each, link) for each in found["anyOf"])
    if "const" in found or "enum" in found:
        return "integer" if "const" in found else "string"
    kinds = found["type"] if isinstance(found["type"], list) else [found["type"]]
    if "prefixItems" in found:
        return "list of " + _kind(found["prefixItems"][0], link)
    if kinds == ["array"]:
        return "list of " + _kind(found["items"], link)
    if kinds == ["object"]:
        return "map of " + _kind(found["additionalProperties"], link)
    return " or ".join(kinds)


def _meaning(heading: str, key: str, found: Any) -> str:
    """Return the meaning of a field for a cell of a table."""
    if "description" not in found:
        raise KeyError(f"{heading}: {key} has no meaning: write a text after the field of its type")
    text = str(found["description"]).removesuffix(".").replace("|", "\\|")
    is_word = text[1:2].islower() or text[1:2] == " "
    version = f", {found['const']}" if "const" in found else ""
    return f"{text[0].lower() if is_word else text[0]}{text[1:]}{version}"


def _columns() -> str:
    return "".join(f"| `{name}` | {column.meaning} |\n" for name, column in EXPORTED.items())


def _codes(codes: type[Labeled]) -> str:
    return "".join(f"| `{code}` | {code.label} |\n" for code in codes)


if __name__ == "__main__":
    PAGE.write_text(generate())
