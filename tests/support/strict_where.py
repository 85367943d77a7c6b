"""Importing this makes `np.where` refuse a number that the array beside it cannot hold, as NumPy 2.5 does.

NumPy 2.4, the last one for Python 3.11, silently makes 255 of -1 beside bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_where = np.where


def _strict_where(condition: Any, *choices: Any) -> Any:
    for number, other in (choices, choices[::-1]) if len(choices) == 2 else ():
        if isinstance(number, int) and isinstance(other, np.ndarray) and other.dtype.kind in "iu":
            np.array(number, other.dtype)  # OverflowError where it is out of bounds
    return _where(condition, *choices)


np.where = _strict_where
