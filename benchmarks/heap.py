"""Where a compiler puts buffers that come and go: best fit over the free blocks of one growing heap."""

from bisect import bisect_left, insort

ALIGNMENT = 512  # bytes; what TPU programs align buffers to


class BestFitHeap:
    """Gives each live buffer bytes of its own. `size` is the most that was ever in use, holes included."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (size, offset), smallest first
        self._by_start: dict[int, int] = {}  # offset of a free block -> its size
        self._by_end: dict[int, int] = {}  # end of a free block -> its size

    def allocate(self, size: int) -> int:
        """The offset of `size` bytes: from the smallest hole that holds them, else at the end of the heap."""
        size = aligned(size)
        at = bisect_left(self._free, (size, 0))
        if at == len(self._free):
            return self._grow(size)
        hole, offset = self._free[at]
        self._remove(offset, hole)
        if hole > size:
            self._insert(offset + size, hole - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        """Gives the bytes back, joined with the free blocks they touch."""
        size = aligned(size)
        if before := self._by_end.get(offset, 0):
            self._remove(offset - before, before)
        if after := self._by_start.get(offset + size, 0):
            self._remove(offset + size, after)
        self._insert(offset - before, before + size + after)

    def _grow(self, size: int) -> int:
        """Extends the heap by what its last block lacks."""
        last = self._by_end.get(self.size, 0)
        offset = self.size - last
        if last:
            self._remove(offset, last)
        self.size = offset + size
        return offset

    def _insert(self, offset: int, size: int) -> None:
        insort(self._free, (size, offset))
        self._by_start[offset] = self._by_end[offset + size] = size

    def _remove(self, offset: int, size: int) -> None:
        del self._free[bisect_left(self._free, (size, offset))]
        del self._by_start[offset], self._by_end[offset + size]


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
