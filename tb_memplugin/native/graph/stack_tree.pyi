import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

class Chains:
    def __init__(self, first: I64, frame: I32) -> None: ...
    def add(self, length: I64, place: I32) -> I32: ...
    def tree(self) -> tuple[I32, I32]: ...
