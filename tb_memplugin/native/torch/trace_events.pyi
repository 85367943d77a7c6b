import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

FIELDS: tuple[str, ...]

def scan(
    data: bytes | memoryview, room: int = ...
) -> tuple[tuple[F64, I64], tuple[F64, F64, I64, U8, I64, I64], int]: ...
