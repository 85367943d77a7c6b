import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

def partners(address: I64, frees: U8, known: U8) -> tuple[I64, int]: ...
