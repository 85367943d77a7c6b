import numpy as np
import numpy.typing as npt

from tb_memplugin.native.charges import Charges

I64 = npt.NDArray[np.int64]

def numbers(
    data: bytes | memoryview, start: I64, length: I64, field: int, budget: Charges | None = None
) -> tuple[I64, I64]: ...
