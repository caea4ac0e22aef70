"""Converts numpy arrays to Arrow arrays of the schemas' types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline.schema import TIMESTAMP
from storage.columnar.batch_columns import BoolArray, Int64Array

FIRST_MS = -62_135_596_800_000
LAST_MS = 253_402_300_799_999
"""The years 1 to 9999, the range of a timestamp."""


def make_int64s(values: Int64Array, are_there: BoolArray | None = None) -> pa.Array:
    """An ``int64`` array; null where ``are_there`` is false."""
    return pa.array(values, pa.int64(), mask=_invert(are_there))


def make_int32s(values: Int64Array, are_there: BoolArray | None = None) -> pa.Array:
    """An ``int32`` array; the values must fit."""
    return pa.array(values.astype(np.int32), pa.int32(), mask=_invert(are_there))


def make_timestamps(times_ms: Int64Array, are_there: BoolArray | None = None) -> pa.Array:
    """Wall ms as ``schema.TIMESTAMP``; null outside the years 1 to 9999."""
    fit = (times_ms >= FIRST_MS) & (times_ms <= LAST_MS)
    if are_there is not None:
        fit &= are_there
    micros = np.where(fit, times_ms, 0) * 1000
    return pa.array(micros, pa.int64(), mask=_invert(fit)).cast(TIMESTAMP)


def make_names(names: Sequence[str | None], indices: Int64Array) -> pa.Array:
    """One name per row, by its index."""
    return pa.array(names, pa.string()).take(pa.array(indices))


def _invert(are_there: BoolArray | None) -> BoolArray | None:
    return None if are_there is None or are_there.all() else ~are_there
