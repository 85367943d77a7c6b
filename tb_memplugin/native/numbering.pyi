import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

def number_values(values: I64) -> tuple[I64, I64]: ...
