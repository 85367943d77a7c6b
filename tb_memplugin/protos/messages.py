"""Message types as the readers use them: names, numbers and types of fields, without protobuf's runtime.

Importing the runtime would take longer than reading a small program does.
"""

from __future__ import annotations

from typing import NamedTuple

# Types of fields, with the numbers of protobuf's FieldDescriptorProto.Type.
DOUBLE, INT64, UINT64, INT32, BOOL, MESSAGE, BYTES, UINT32, ENUM = 1, 3, 4, 5, 8, 11, 12, 13, 14


class Field(NamedTuple):
    """A field of a message."""

    name: str
    number: int
    type: int
    is_repeated: bool
    message_type: Message | None  # of a field of type MESSAGE


class Message:
    """A message type. Its fields are set once all types of its file exist, as a message may contain itself."""

    def __init__(self) -> None:
        self.fields: tuple[Field, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.fields)

    def number(self, name: str) -> int:
        """Return the number of a field. KeyError where the message has no field of this name."""
        return {field.name: field.number for field in self.fields}[name]
