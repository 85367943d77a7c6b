"""Importing this before jsonschema saves three seconds where JupyterLab is installed.

jsonschema then imports rfc3987_syntax, to check IRIs, which parses a grammar. No schema here has an IRI.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
