import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

class NotNumbers(ValueError): ...

def read_lists(data: bytes | memoryview, room: int) -> tuple[I64, npt.NDArray[np.uint8], I64]: ...
