"""The store of docs/fencing.md, made of the statements of that page."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any, Final

import muster

_PAGE: Final = (Path(__file__).parents[2] / "docs" / "fencing.md").read_text(encoding="utf-8")
_TABLE, _TAKE_TOKEN, *_ = re.findall(r"```sql\n(.*?)```", _PAGE, re.DOTALL)
_CODE: Final[dict[str, Any]] = {"TAKE_TOKEN": _TAKE_TOKEN}
exec("".join(re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)), _CODE)


def open_store(path: str | Path) -> sqlite3.Connection:
    """The store, with a table of orders."""
    store = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    store.execute(_TABLE)
    store.execute("CREATE TABLE IF NOT EXISTS orders (written_by TEXT)")
    return store


def write_order(
    store: sqlite3.Connection,
    group_id: str,
    partition: muster.TopicPartition,
    token: int,
    written_by: str,
) -> bool:
    """Write an order as the owner of a partition; ``False`` if the store refuses."""
    fence = {
        "group_id": group_id,
        "topic": partition.topic,
        "partition_id": partition.partition,
        "token": token,
    }
    statement = "INSERT INTO orders VALUES (?)"
    return bool(_CODE["write"](store, fence, statement, (written_by,)))
