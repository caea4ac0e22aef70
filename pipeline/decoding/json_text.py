"""Keys and values as Kafka's JSON text, with one codec call per distinct value."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from pipeline.decoding.byte_slices import Slices
from storage.codec.errors import CodecError
from storage.codec.to_json import key_to_json, value_to_json
from storage.columnar.batch_columns import Int64Array

Problems = dict[int, str]
"""The codec's error, by row."""


def make_key_texts(data: bytes, keys: Slices) -> tuple[pa.Array, Problems]:
    """The JSON of keys of known types."""
    return _make_texts(data, keys, lambda key, _: key_to_json(key), None)


def make_value_texts(data: bytes, values: Slices, types: Int64Array) -> tuple[pa.Array, Problems]:
    """The JSON of values of known types and versions."""
    return _make_texts(data, values, lambda value, type_id: value_to_json(type_id, value), types)


def _make_texts(
    data: bytes,
    slices: Slices,
    to_json: Callable[[bytes, int], object],
    types: Int64Array | None,
) -> tuple[pa.Array, Problems]:
    rows = np.flatnonzero(slices.are_there).tolist()
    if not rows:
        return pa.nulls(len(slices.starts), pa.string()), {}
    texts: list[str | None] = [None] * len(slices.starts)
    problems: Problems = {}
    known: dict[tuple[bytes, int], str] = {}
    starts = slices.starts.tolist()
    ends = (slices.starts + slices.lengths).tolist()
    type_ids = [0] * len(starts) if types is None else types.tolist()
    for row in rows:
        part = data[starts[row] : ends[row]], type_ids[row]
        text = known.get(part)
        if text is None:
            try:
                text = known[part] = dump(to_json(*part))
            except CodecError as error:
                problems[row] = str(error)
        texts[row] = text
    return pa.array(texts, pa.string()), problems


def dump(value: object) -> str:
    """JSON without spaces and ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
