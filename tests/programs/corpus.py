"""All programs of the corpus, by name."""

from __future__ import annotations

from programs import advice_arguments as advice_arguments
from programs import dense as dense
from programs import language_models as language_models
from programs import llama as llama
from programs.case import ADVISED as ADVISED
from programs.case import CORPUS as CORPUS

PROGRAMS = CORPUS | ADVISED
