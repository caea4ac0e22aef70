"""The committed stubs are what the .proto files generate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_committed_stubs_are_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_stubs.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_element_of_the_contract_is_commented() -> None:
    for path in sorted((ROOT / "proto" / "muster" / "v1").glob("*.proto")):
        before = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            declares = text.startswith(("message ", "enum ", "service ", "rpc ", "oneof "))
            if declares or " = " in text.partition("//")[0]:
                assert before.startswith("//") or text.startswith("syntax"), f"{path}:{number}"
            before = text
