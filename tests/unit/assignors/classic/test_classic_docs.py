"""The programs in docs/assignors-classic.md run and print what the page says."""

from __future__ import annotations

import ast
import re

from tests.groups import CHECKOUT

DOCS = (CHECKOUT / "docs" / "assignors-classic.md").read_text(encoding="utf-8")


def test_the_programs_run_and_answer_as_written() -> None:
    names: dict[str, object] = {}
    programs = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        *statements, last = ast.parse(program).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements, []), "docs", "exec"), names)
        answer = eval(ast.unparse(last), names)
        written = re.search(r"^# (\{.*\})$", program, re.MULTILINE)
        if written is not None:
            assert answer == ast.literal_eval(written[1])
        assert set(answer) == {"a", "b"}
