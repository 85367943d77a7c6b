import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

def intern(data: bytes | memoryview, start: I64, length: I64) -> tuple[I32, I64]: ...
def gather(data: bytes | memoryview, start: I64, length: I64) -> tuple[bytes, I64]: ...
def join(
    left_blob: bytes, left_offsets: I64, left: I32, right_blob: bytes, right_offsets: I64, right: I32
) -> tuple[bytes, I64]: ...
