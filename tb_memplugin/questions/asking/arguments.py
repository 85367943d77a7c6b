"""Arguments of questions, each declared once: the options of the commands, and the JSON Schemas of the tools of MCP."""

import argparse
from typing import Any, NamedTuple

from tb_memplugin.questions.asking.asked import TOP

MAX_TEXT = 4096  # characters that a tool accepts


class QuestionArgument(NamedTuple):
    """An argument of a question: a text, one of the `choices`, or a whole number where `low` and `high` are given."""

    name: str
    help: str
    default: str | int | None = None
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    min_length: int = 0
    max_length: int = MAX_TEXT
    required: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the argument, for tools."""
        limits: dict[str, Any]
        if self.choices:
            limits = {"enum": list(map(str, self.choices))}
        elif self.low is not None:
            limits = {"type": "integer", "minimum": self.low, "maximum": self.high}
        else:
            limits = {"type": "string", "maxLength": self.max_length}
            limits |= {"minLength": self.min_length} if self.min_length else {}
        plain = self.default if self.low is not None else str(self.default)
        default = {} if self.default is None else {"default": plain}
        return {**limits, **default, "description": self.help}

    def add_to(self, parser: argparse._ActionsContainer, metavar: str | None = None) -> None:
        """Add the option to the parser of a command."""
        default = "" if self.default is None else " (default: %(default)s)"
        parser.add_argument(
            f"--{self.name.replace('_', '-')}",
            metavar=metavar,
            choices=self.choices or None,
            type=str if self.low is None else int,
            default=self.default,
            help=self.help + default,
        )


RECORDING = QuestionArgument(
    "recording",
    "the id of a recording, from `summary`, or a unique part of it; without it, the recording with the largest peak",
    min_length=1,
)
AT = QuestionArgument(
    "at",
    "a moment in place of the peak: a time, such as 1.5s or 300ms, or a position or event number, such as '#120'",
    max_length=100,
)
AT_A, AT_B = (AT._replace(name=f"at_{state.lower()}", help=f"of {state}, {AT.help}") for state in "AB")
MATCH = QuestionArgument("match", "only those with this text in name, model path, shape, role or source line")
ROW = QuestionArgument("row", "all that is known of one, by its `row` in the list", low=0, high=1 << 53)
BY = QuestionArgument("by", "how to group the changes", "role", ("role", "model", "source"))
# Commands accept `all`, too; a tool's answer must not fill the context of a model.
TOP_ITEMS = QuestionArgument("top", "items of each list; `omitted` counts the others", TOP, low=1, high=100)
