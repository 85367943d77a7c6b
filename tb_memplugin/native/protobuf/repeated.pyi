import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

def numbers(data: bytes | memoryview, start: I64, length: I64, field: int) -> tuple[I64, I64]: ...
