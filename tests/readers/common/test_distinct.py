"""Distinct values, compared with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tb_memplugin.readers.common.rows import distinct


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("length", [0, 1, 2, 100])
def test_values_and_their_type_are_those_of_numpy(dtype: type, length: int) -> None:
    values: npt.NDArray[Any] = np.random.default_rng(length).integers(0, 20, length).astype(dtype)
    found = distinct(values)
    assert found.dtype == dtype and found.tolist() == np.unique(values).tolist()
