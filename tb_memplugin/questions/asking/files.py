"""Answers of commands that write or delete files."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from tb_memplugin.questions.asking.asked import AnswerJson
from tb_memplugin.questions.asking.json_types import OmittedJson, ProblemJson


class CachedSummariesJson(TypedDict):
    """What `fleet` keeps in the user's cache folder."""

    folder: str
    files: int
    programs: int
    bytes: int
    limit_bytes: int


class CachedProgramsJson(TypedDict):
    """What `fit` keeps in the user's cache folder."""

    folder: str
    programs: int
    bytes: int
    limit_bytes: int


class CacheAnswerJson(AnswerJson):
    """What is kept in the user's cache folder."""

    fleet: CachedSummariesJson
    fit: CachedProgramsJson


class WrittenFileJson(TypedDict):
    """A file that a command wrote."""

    path: str
    bytes: int
    rows: int | None
    """The number of rows; null of a report."""


class ExportAnswerJson(AnswerJson):
    """The file that was written, and what it contains."""

    file: WrittenFileJson
    recordings: list[str]
    """Ids of the recordings in it, or the names of captures."""
    problems: list[ProblemJson]
    omitted: NotRequired[OmittedJson]


class HookAnswerJson(AnswerJson):
    """The state of the hook of the `xprof` command."""

    action: str
    text: str


class SkillAnswerJson(AnswerJson):
    """The skill that was installed or shown."""

    action: str
    path: str | None
    """The file; null of a skill that is only shown."""
    text: str
    """What happened, or the skill."""


class SchemasAnswerJson(AnswerJson):
    """The names of the JSON Schemas."""

    schemas: list[str]
