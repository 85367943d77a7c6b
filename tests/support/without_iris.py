"""Importing this before jsonschema saves three seconds where JupyterLab is installed.

jsonschema then imports rfc3987_syntax, to check IRIs, which parses a grammar. No schema here has an IRI.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def without_iris(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that does not import it either."""
    paths = [str(Path(__file__).parent / "stubs"), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
