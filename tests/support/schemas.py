"""Answers checked against the JSON Schemas of the package, which here allow no other keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema

from tb_memplugin import schemas

OPTIONS = {
    "--row": "row",
    "--baseline": "baseline",
    "--fleet": "fleet",
    "--max-spread": "fleet",
    "--fit": "fit",
    "--trend": "trend",
}


def schema_name(arguments: Sequence[str]) -> str:
    """Return the name of the schema of what a call prints, such as `check-fleet`."""
    kinds = [OPTIONS[argument] for argument in arguments if argument in OPTIONS]
    return "-".join([arguments[0], *kinds[:1]])


def validate(answer: Any, name: str) -> None:
    """Fail where an answer does not have the schema, or has keys beside it."""
    _validator(name).validate(answer)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(schemas.text_of(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no other keys than those that it names."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    return {**closed, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed
