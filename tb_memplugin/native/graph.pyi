import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]

def grouped(key: I32, groups: int) -> tuple[I64, I32]: ...
def reach(begin: I64, to: I32, seeds: I32) -> U8: ...
def spread_labels(label: U64, source: I32, target: I32, passes: int) -> bool: ...
def nearest(
    begin: I64, source: I32, steps: I32, kind: U8, starts: I32, ends: U8, most: int
) -> tuple[I32, I32, I32, U8]: ...
def derive(
    first: I64, stop: I64, leaf: I32, begin: I64, operand: I32, kind: U8, weight: U8, most: int
) -> tuple[I32, I32, I32, U8]: ...
