"""The explanation of a recording as text, which a notebook shows with a picture, tables and code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_memplugin.model.recording import Recording


class ProgramReport(str):
    """Text for terminals and files, with HTML for notebooks. A cell shows it once, also where it is its last value."""

    recording: Recording
    _shown_in: int | None  # the number of a cell

    def __new__(cls, recording: Recording) -> ProgramReport:
        from tb_memplugin.questions.explain.explain import explain
        from tb_memplugin.questions.explain.explain_text import lines

        made = super().__new__(cls, "\n".join(lines(explain(recording))))
        made.recording, made._shown_in = recording, None
        return made

    def show(self) -> None:
        """Print the text, or display the HTML in a notebook."""
        shell = ipython()
        if shell is None:
            print(self)
            return
        self._shown_in = shell.execution_count
        shell.display_pub.publish({"text/plain": str(self), "text/html": self._repr_html_()})

    def _ipython_display_(self) -> None:
        shell = ipython()
        if shell is None or shell.execution_count != self._shown_in:
            self.show()

    def _repr_html_(self) -> str:
        from tb_memplugin.questions.asking.html import document
        from tb_memplugin.questions.explain.explain_html import explanation

        return document([explanation(self.recording)])


def ipython() -> Any:
    """Return the running IPython shell, of a notebook or a terminal; None outside of IPython."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None
