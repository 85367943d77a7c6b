import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
U8 = npt.NDArray[np.uint8]

def flow_values(value: I32, dst: I32, src: I32, count: I32) -> None: ...
def flow_uses(last: I32, dst: I32, src: I32, count: I32, defines: U8, position: I32) -> None: ...
def use_ranges(last: I32, node: I32, count: I32, position: I32) -> None: ...
def replay(
    trace: I32, kind: I8, row: I32, shared: I32, size: I64, defined: I64, last_used: I64, length: int
) -> tuple[I64, I64, I64, I64, I32, U8, int, int]: ...
def hand_over(
    region: I64, offset: I64, size: I64, start: I64, end: I64, last_used: I64, canonical: I32
) -> int: ...
