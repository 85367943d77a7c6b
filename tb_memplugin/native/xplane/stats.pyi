from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tb_memplugin.native.charges import Charges

INTEGER: Final[int]
REAL: Final[int]
TEXT: Final[int]
PRESENCE: Final[int]
MISSING: Final[int]

def read_stats(
    plane: bytes | memoryview,
    start: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    columns: Mapping[int, int],
    types: Sequence[int],
    budget: Charges | None = None,
) -> tuple[list[npt.NDArray[Any]], list[list[bytes | int]]]: ...
