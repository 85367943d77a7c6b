import numpy as np
import numpy.typing as npt

from tb_memplugin.native.charges import Charges

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

class Chains:
    def __init__(self, first: I64, frame: I32, budget: Charges | None = None) -> None: ...
    def add(self, length: I64, place: I32) -> I32: ...
    def tree(self) -> tuple[I32, I32]: ...
