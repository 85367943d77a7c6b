"""All programs of the corpus, by name."""

from __future__ import annotations

from programs import dense as dense
from programs.case import CORPUS as CORPUS
