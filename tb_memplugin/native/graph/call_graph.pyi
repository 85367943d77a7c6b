from typing import Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

HIDDEN: Final[int]
DROPPED: Final[int]

def with_callers(parent: I32, marked: Bools) -> Bools: ...
def with_callees(parent: I32, marked: Bools) -> Bools: ...
def weave(
    parent: I32, entity: I32, entities: int, own: I64, with_calls: bool = True
) -> tuple[I64, I64, I32, I32, I64, Bools]: ...
