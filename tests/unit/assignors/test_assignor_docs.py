"""The programs of docs/assignors.md do what the page says."""

from __future__ import annotations

import re

import numpy as np

from model.configs.group_configs import GROUP_CONFIGS
from muster.assignors.assignor import Assignor
from muster.assignors.problem import Problem, Subscriptions
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import compute_assignment
from tests.groups import CHECKOUT

PAGE = (CHECKOUT / "docs" / "assignors.md").read_text(encoding="utf-8")


def test_the_assignor_of_the_page_is_one() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (program,) = [text for text in programs if "def assign_round_robin" in text]
    names: dict[str, object] = {}
    exec(program, names)
    assign = names["assign_round_robin"]
    assert callable(assign)
    start, owner = np.array([0, 3, 5]), np.full(5, -1, dtype=np.int32)
    for members, expected in ((2, [0, 1, 0, 1, 0]), (0, [-1] * 5)):
        problem = Problem(start, members, owner, Subscriptions.all(members, 2))
        answer = compute_assignment(Assignor("roundrobin", assign), problem)
        assert answer.target.tolist() == expected


def test_the_page_names_all_assignors_and_their_settings() -> None:
    for name in ASSIGNORS:
        assert f"| `{name}` |" in PAGE
    for name in GROUP_CONFIGS:
        if name.startswith("consumer.assignor"):
            assert f"| `{name}` |" in PAGE, name
