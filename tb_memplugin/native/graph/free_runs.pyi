import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

def free_runs(start: I64, end: I64, low: I64, high: I64, space: int, length: int) -> tuple[I64, I64]: ...
