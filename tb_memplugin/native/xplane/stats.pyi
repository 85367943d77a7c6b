from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.charges import Charges

INTEGER: Final[int]
REAL: Final[int]
TEXT: Final[int]
PRESENCE: Final[int]
MISSING: Final[int]

def new_columns(rows: int, types: Sequence[int], used: Collection[int]) -> list[npt.NDArray[Any]]: ...
def read_stats(
    plane: bytes | memoryview,
    start: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    ids: Mapping[int, int],
    columns: Sequence[npt.NDArray[Any]],
    budget: Charges | None = None,
) -> list[list[bytes | int]]: ...
