"""Answers of commands that write or delete files."""

from typing import TypedDict

from tb_memplugin.questions.asking.asked import AnswerJson
from tb_memplugin.questions.asking.json_types import ProblemJson


class CachedProgramsJson(TypedDict):
    """The compiled programs that `fit` keeps in the user's cache folder."""

    folder: str
    """The folder."""
    programs: int
    """The number of programs."""
    bytes: int
    """The size on disk."""
    limit_bytes: int
    """The size that it may have."""


class CachedSummariesJson(CachedProgramsJson):
    """The summaries that `fleet` keeps in the user's cache folder."""

    files: int
    """The number of files with a summary."""


class CacheAnswerJson(AnswerJson):
    """The content of the user's cache folder."""

    fleet: CachedSummariesJson
    """The summaries of `fleet`."""
    fit: CachedProgramsJson
    """The compiled programs of `fit`."""


class BaselineFileJson(TypedDict):
    """The file of a baseline."""

    path: str
    """Its path."""
    bytes: int
    """Its size."""


class WrittenFileJson(BaselineFileJson):
    """A file that a command wrote."""

    rows: int | None
    """The number of rows; null of a report."""


class ExportAnswerJson(AnswerJson):
    """The file that was written, and the recordings in it."""

    file: WrittenFileJson
    """The file that was written."""
    recordings: list[str]
    """The ids of the recordings in it, or the names of captures."""
    problems: list[ProblemJson]
    """The recordings that cannot be exported."""


class HookAnswerJson(AnswerJson):
    """The state of the hook of the `xprof` command."""

    action: str
    """`install`, `status` or `remove`."""
    text: str
    """The state of the hook in words."""


class SkillAnswerJson(AnswerJson):
    """The skill that was installed or shown."""

    action: str
    """`install` or `show`."""
    path: str | None
    """The file; null of a skill that is only shown."""
    text: str
    """The result in words, or the skill."""


class SchemasAnswerJson(AnswerJson):
    """The names of the JSON Schemas."""

    schemas: list[str]
    """The names of the JSON Schemas; `tb-memplugin schema NAME` prints one."""
