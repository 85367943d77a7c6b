import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

NONE: int
BOOL: int
INT: int
FLOAT: int
TEXT: int
LIST: int
RECORD: int
HUGE: int

class Plain:
    kind: npt.NDArray[np.uint8]
    value: I64
    root: int
    nbytes: int
    text_start: I64
    text_length: I64
    tables: list[tuple[U32, U32]]
    def items(self, node: int) -> U32: ...
    def count(self, node: int) -> int: ...
    def flat_count(self, chunks: npt.NDArray[np.int32]) -> int: ...
    def flat(self, chunks: npt.NDArray[np.int32]) -> tuple[I64, U32]: ...
