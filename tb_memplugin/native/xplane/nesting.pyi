import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

def enclosing(line_events: I64, start: I64, stop: I64) -> I32: ...
def intern_chains(parent: I32, name: I32, consumer: I32, producer: I32, wanted: I64) -> tuple[I32, I32, I32]: ...
