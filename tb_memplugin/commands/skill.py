"""The command `skill`."""

from __future__ import annotations

import argparse
import hashlib
import re
from importlib.resources import files
from pathlib import Path

from tb_memplugin import __version__
from tb_memplugin.commands.support.output import atomic_file
from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.errors import InputError
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import SkillAnswerJson
from tb_memplugin.questions.records import record

NAME = "tb-memplugin"
# Identifies a file that nobody changed, whichever version wrote it.
CHECKSUM = re.compile(r"(?m)^  checksum: ([0-9a-f]{16})$")


def run(arguments: argparse.Namespace) -> None:
    installed = install(arguments.folder, arguments.force) if arguments.action == "install" else None
    text = skill_text().rstrip("\n") if installed is None else f"{installed[1]}: {installed[0]}"
    path = str(installed[0]) if installed is not None else None
    found = record(SkillAnswerJson, arguments, schema_version=SCHEMA_VERSION, path=path, text=text, next=[])
    reply(arguments.json, lambda: found, text.split("\n"))


def skill_text() -> str:
    """Return the skill, with this version and a checksum in its front matter."""
    text = files("tb_memplugin.commands").joinpath("SKILL.md").read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    text = f"---\n{front}metadata:\n  version: {__version__}\n  checksum: {'0' * 16}\n---\n{body}"
    return text.replace("0" * 16, _checksum(text))


def install(folder: str, force: bool) -> tuple[Path, str]:
    """Write the skill; return its file and what happened. InputError where it cannot be written, or was changed."""
    path = Path(folder).expanduser() / NAME / "SKILL.md"
    text = skill_text()
    try:
        before = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
        checksum = CHECKSUM.search(before or "")
        if before is not None and not force and (checksum is None or checksum[1] != _checksum(before)):
            raise InputError("The skill was changed", str(path), "overwrite it with --force, or choose another DIR")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("Cannot write the skill", str(path), error.strerror or str(error)) from error
    with atomic_file(str(path)) as stream:
        stream.write(text.encode())
    return path, "Up to date" if before == text else "Installed"


def _checksum(text: str) -> str:
    """Return the checksum of a skill, in which its own is zero."""
    return hashlib.sha256(CHECKSUM.sub(f"  checksum: {'0' * 16}", text, count=1).encode()).hexdigest()[:16]
