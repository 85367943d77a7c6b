import numpy as np
import numpy.typing as npt

from tb_memplugin.native.text.spans import Spans

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

def samples(
    data: bytes | memoryview, start: I64, length: I64, chosen: I64, entry: I32, key: I32
) -> tuple[Spans, npt.NDArray[np.bool_], I64, I64, I64]: ...
