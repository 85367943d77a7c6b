import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]

def charge_once(region: I64, offset: I64, start: I64, end: I64, last_used: I64, charge: I64) -> tuple[I32, I32]: ...
def union_over_time(group: I64, offset: I64, size: I64, lifetime: I64, begins: I8) -> I64: ...
