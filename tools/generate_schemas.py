"""JSON Schemas of what the commands print with --json, generated from the types of the answers.

    python -m tools.generate_schemas

A test fails while the committed files in tb_memplugin/schemas differ from what this writes.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import types
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from tb_memplugin import schemas
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION, ErrorAnswerJson
from tb_memplugin.questions.asking.files import (
    CacheAnswerJson,
    ExportAnswerJson,
    HookAnswerJson,
    SchemasAnswerJson,
    SkillAnswerJson,
)
from tb_memplugin.questions.compare.baseline import BaselineAnswerJson, CheckBaselineAnswerJson
from tb_memplugin.questions.compare.budget import CheckAnswerJson
from tb_memplugin.questions.compare.pairs import CompareAnswerJson
from tb_memplugin.questions.explain.buffers import BufferAnswerJson, BuffersAnswerJson
from tb_memplugin.questions.explain.explain_answer import ExplainAnswerJson
from tb_memplugin.questions.fit.answer import CheckStepAnswerJson, FitAnswerJson
from tb_memplugin.questions.fit.plan import PlanAnswerJson
from tb_memplugin.questions.fleet.answer import FleetAnswerJson
from tb_memplugin.questions.fleet.budget import CheckFleetAnswerJson
from tb_memplugin.questions.fleet.trend import TrendAnswerJson
from tb_memplugin.questions.recording.advice import AdviceAnswerJson
from tb_memplugin.questions.recording.summary import SummaryAnswerJson
from tb_memplugin.questions.recording.times import TimesAnswerJson
from tools.generate_client import field_texts, parse_class

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANSWERS: dict[str, Any] = {
    "advice": AdviceAnswerJson,
    "times": TimesAnswerJson,
    "baseline": BaselineAnswerJson,
    "buffers": BuffersAnswerJson,
    "buffers-row": BufferAnswerJson,
    "cache": CacheAnswerJson,
    "check": CheckAnswerJson,
    "check-baseline": CheckBaselineAnswerJson,
    "check-fit": CheckStepAnswerJson,
    "check-fleet": CheckFleetAnswerJson,
    "compare": CompareAnswerJson,
    "error": ErrorAnswerJson,
    "explain": ExplainAnswerJson,
    "export": ExportAnswerJson,
    "fit": FitAnswerJson,
    "fleet": FleetAnswerJson,
    "fleet-trend": TrendAnswerJson,
    "hook": HookAnswerJson,
    "plan": PlanAnswerJson,
    "schema": SchemasAnswerJson,
    "skill": SkillAnswerJson,
    "summary": SummaryAnswerJson,
}
LINK = re.compile(r"\[([^][]+)\]\([\w.#-]+\)")  # of Markdown, which only docs/json.md shows
SCALARS: dict[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
OMITTED = {
    "type": "object",
    "description": "By the key of each list that was cut, the number of items that are left out.",
    "additionalProperties": {"type": "integer", "minimum": 1},
}


def generate() -> dict[str, str]:
    """Return the text of each file by its name."""
    texts = {name: json.dumps(schema_of(name), indent=1) for name in ANSWERS}
    return {f"{name}.json": LINK.sub(r"\1", text) + "\n" for name, text in texts.items()}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an answer."""
    definitions: dict[str, Any] = {}
    schema = _object(ANSWERS[name], definitions)
    version = schema["properties"]["schema_version"]
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "description": version["description"]}
    return {"$schema": DIALECT, "title": name, **schema, "$defs": dict(sorted(definitions.items()))}


def _object(answer: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a TypedDict, and add those of its parts to the definitions."""
    properties, required = dict[str, Any](), []
    texts = _texts(answer)
    for key, hint in get_type_hints(answer, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        found = _value(get_args(hint)[0] if optional else hint, definitions)
        properties[key] = {**found, **({"description": texts[key]} if texts.get(key) else {})}
        if not optional:
            required.append(key)
    if any("array" in str(found.get("type")) for found in properties.values()):
        properties["omitted"] = OMITTED
    about = " ".join(inspect.cleandoc(answer.__doc__ or "").split())
    return {"type": "object", "description": about, "properties": properties, "required": required}


def _texts(answer: Any) -> dict[str, str]:
    """Return the texts of the fields of a TypedDict and of its bases."""
    parsed, scope = parse_class(answer), vars(sys.modules[answer.__module__])
    texts: dict[str, str] = {}
    for base in parsed.bases:
        if isinstance(base, ast.Name) and is_typeddict(scope[base.id]):
            texts |= _texts(scope[base.id])
    return texts | {key: " ".join(text.split()) for key, text in field_texts(parsed).items()}


def _value(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return dict(SCALARS[hint])
    if origin in (list, Sequence):
        return {"type": "array", "items": _value(arguments[0], definitions)}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_value(argument, definitions) for argument in arguments]}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _value(arguments[1], definitions)}
    if origin in (Union, types.UnionType):
        return _one_of([_value(argument, definitions) for argument in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [member.value for member in hint]}
    if is_typeddict(hint):
        name = hint.__name__.removesuffix("Json")
        if name not in definitions:
            definitions[name] = {}  # while its fields are described
            definitions[name] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    raise TypeError(f"{hint} has no JSON Schema: add it to tools/generate_schemas.py")


def _one_of(choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of several types; of scalars, a list of their names."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": list(choices)}


def main() -> None:
    folder = Path(schemas.__file__).parent
    for path in folder.glob("*.json"):
        path.unlink()
    for name, text in generate().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
