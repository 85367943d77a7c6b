"""A reader of the commands' JSON, which counts its calls and the bytes that it reads."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from tb_memplugin.cli import main


class Reader:
    """Asks the first question itself, and the others as `next` of the last answer gives them."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes = 0
        self.answer: dict[str, Any] = {}

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run a command with --json and return its answer."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            main([*arguments, "--json"])
        text = printed.getvalue()
        self.calls += 1
        self.bytes += len(text.encode())
        self.answer = json.loads(text)
        return self.answer

    def follow(self, command: str, why: str = "") -> dict[str, Any]:
        """Run the first command of `next` with this name, whose reason contains `why`. LookupError where none has."""
        for further in self.answer["next"]:
            _, name, *arguments = further["command"]
            if name == command and why in further["why"]:
                return self.ask(name, *(argument for argument in arguments if argument != "--json"))
        raise LookupError(f"no `{command}` about {why!r} in {self.answer['next']}")
