"""The file of a baseline: JSON with a fixed order, one line for each argument and array, for small diffs in git."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from tb_memplugin import __version__
from tb_memplugin.errors import InputError
from tb_memplugin.model.changes import ArgumentFacts, ArrayFacts, FusedFacts, MemoryFacts
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.sizes import bytes_text, parse_size

PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?%", re.ASCII)
TOLERANCE = "2%"


class Tolerance(NamedTuple):
    """A limit of growth, as a share of the figure before and in bytes."""

    text: str
    share: float
    bytes: int

    def allowed(self, before: int) -> int:
        """Return the largest figure that is allowed, in bytes."""
        return int(before * (1 + self.share)) + self.bytes


def parse_tolerance(text: str) -> Tolerance:
    """Parse a percentage such as `2%`, or a size such as `100MiB`. InputError for other texts."""
    if percent := PERCENT.fullmatch(text.strip()):
        return Tolerance(text, float(percent[1]) / 100, 0)
    try:
        return Tolerance(text, 0.0, parse_size(text))
    except InputError as error:
        raise InputError(
            "Not a size or percentage", text, "give a percentage, such as 2%, or a size, such as 100MiB"
        ) from error


SCHEMA_VERSION = 1
MAX_FILE_BYTES = 16 << 20
MAX_BYTES = 2**62
MAX_NAME = 300  # characters; longer names are cut
MAX_RECORDINGS = 1000
MAX_ROWS = 200  # rows of a list to read; 80 are written
LISTS: dict[str, type] = {
    "arguments": ArgumentFacts,
    "arrays": ArrayFacts,
    "saved": ArrayFacts,
    "fused": FusedFacts,
}
# Rows of the file leave out these values.
DEFAULTS: dict[str, Any] = {"sharding": "", "copies": 1, "function": "", "layers": 1, "donated_bytes": 0}
POSITIVE = {"copies", "layers"}
REWRITE = "write it again with `tb-memplugin baseline LOGDIR --write FILE`"


def write_command(file: str) -> str:
    """Return the command that writes a baseline to `file`."""
    return f"tb-memplugin baseline LOGDIR --write {shlex.quote(file)}"


class Baseline(NamedTuple):
    """The content of a baseline's file."""

    recordings: list[MemoryFacts]
    tolerance: Tolerance


def text_of(found: Sequence[MemoryFacts], tolerance: str = TOLERANCE) -> str:
    """Return the content of a baseline's file, without times, hosts and folders."""
    head = {"schema_version": SCHEMA_VERSION, "tb_memplugin": __version__, "tolerance": tolerance}
    recordings = ",\n".join(dict.fromkeys(sorted(map(_object, found))))
    top = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    return f'{{\n{top} "recordings": [\n{recordings}\n ]\n}}\n'


def _object(facts: MemoryFacts) -> str:
    """Return the lines of one recording: a line for each figure, and for each row of a list."""
    members = []
    for key, value in facts_json(facts).items():
        rows = ",\n".join(f"    {_inline(row)}" for row in value) if key in LISTS else ""
        members.append(f"   {json.dumps(key)}: " + (f"[\n{rows}\n   ]" if rows else _inline(value)))
    return "  {\n" + ",\n".join(members) + "\n  }"


def _inline(value: Any) -> str:
    """Return a value as JSON in one line, whose control characters are escaped: the file is shown in terminals."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def facts_json(facts: MemoryFacts) -> dict[str, Any]:
    """Return facts for JSON. Rows leave out values that are the default."""
    head = {
        "name": _name(facts.name),
        "kind": facts.kind.value,
        "memory": _name(facts.memory),
        "peak_bytes": facts.peak_bytes,
        "reserved_bytes": facts.reserved_bytes,
        "roles_bytes": dict(sorted(facts.roles_bytes.items())),
        "devices": facts.devices,
        "floor_bytes": facts.floor_bytes,
        "output_bytes": facts.output_bytes,
        "microbatches": facts.microbatches,
        "elsewhere": [_name(path) for path in facts.elsewhere],
    }
    return head | {key: [_row_json(row) for row in getattr(facts, key)] for key in LISTS}


def _row_json(row: Any) -> dict[str, Any]:
    values = {key: _name(value) if isinstance(value, str) else value for key, value in asdict(row).items()}
    return {key: value for key, value in values.items() if key not in DEFAULTS or value != DEFAULTS[key]}


def _name(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:MAX_NAME]


def parse(data: bytes, file: str) -> Baseline:
    """Parse a baseline's file. InputError if it is something else, or of a newer version."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("Not a baseline", file, f"it is not JSON; {REWRITE}") from error
    if not isinstance(content, dict) or not isinstance(content.get("schema_version"), int):
        raise InputError("Not a baseline", file, f"it has no schema_version; {REWRITE}")
    if content["schema_version"] != SCHEMA_VERSION:
        newer = content["schema_version"] > SCHEMA_VERSION
        remedy = "install the version of tb-memplugin that wrote it, or a newer one" if newer else REWRITE
        raise InputError(f"A baseline of schema version {content['schema_version']}", file, remedy)
    recordings = content.get("recordings")
    try:
        tolerance = parse_tolerance(_text(content.get("tolerance", TOLERANCE)))
        return Baseline([_facts(each) for each in _list(recordings, MAX_RECORDINGS)], tolerance)
    except InputError as error:
        raise InputError("A damaged baseline", file, f"its tolerance is {error.where!r}; {error.remedy}") from error
    except KeyError as error:
        raise InputError("A damaged baseline", file, f"a recording lacks {error}; {REWRITE}") from error
    except (TypeError, ValueError) as error:
        raise InputError("A damaged baseline", file, f"{error}; {REWRITE}") from error


def _facts(value: Any) -> MemoryFacts:
    if not isinstance(value, Mapping):
        raise TypeError("a recording is no object")
    roles = value["roles_bytes"]
    if not isinstance(roles, Mapping):
        raise TypeError("roles_bytes is no object")
    lists = {key: tuple(_row(kind, row) for row in _list(value[key], MAX_ROWS)) for key, kind in LISTS.items()}
    return MemoryFacts(
        kind=RecordingKind(_text(value["kind"])),
        name=_text(value["name"]),
        memory=_text(value["memory"]),
        peak_bytes=_count(value["peak_bytes"]),
        reserved_bytes=_known(value["reserved_bytes"]),
        roles_bytes={_text(role): _count(size) for role, size in roles.items()},
        devices=_count(value["devices"], 1),
        floor_bytes=_count(value["floor_bytes"]),
        output_bytes=_known(value.get("output_bytes")),
        microbatches=_known(value.get("microbatches")),
        elsewhere=tuple(_text(path) for path in _list(value.get("elsewhere", []), MAX_ROWS)),
        **lists,
    )


def _row(kind: type, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no object"[:MAX_NAME])
    found = {}
    for field in fields(kind):
        entry = value.get(field.name, DEFAULTS[field.name]) if field.name in DEFAULTS else value[field.name]
        found[field.name] = _text(entry) if field.type is str else _count(entry, int(field.name in POSITIVE))
    return kind(**found)


def _list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise TypeError("a list is missing, or too long")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text"[:MAX_NAME])
    return value[:MAX_NAME]


def _count(value: Any, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_BYTES:
        raise TypeError(f"{value!r} is no number from {least} up"[:MAX_NAME])
    return value


def _known(value: Any) -> int | None:
    return None if value is None else _count(value)


def read_baseline(file: str) -> Baseline:
    """Read a baseline's file. InputError where it cannot be read or is none."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        remedy = f"write it with `{write_command(file)}`"
        raise InputError("Cannot read the baseline", file, f"{error.strerror or error}; {remedy}") from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError("Not a baseline", file, f"it has more than {bytes_text(MAX_FILE_BYTES)}")
    return parse(data, file)
