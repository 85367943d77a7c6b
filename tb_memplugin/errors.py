"""The one exception a user can do something about."""

from __future__ import annotations


class InputError(Exception):
    """The input or the call is wrong: `what` happened, `where` (a file, a parameter), and the `remedy`.

    Every host prints it as one line; no other exception is meant for a user's eyes.
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.remedy}"
