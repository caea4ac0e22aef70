"""What a load test has to reach, such as ``p99<20ms``, ``rate>5000`` or ``errors<1``."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LATENCIES: Final = ("p50", "p90", "p99", "p999", "max")
DURATIONS: Final = (
    *LATENCIES,
    *(f"service_{name}" for name in LATENCIES),
    *(f"convergence_{name}" for name in LATENCIES),
)
NUMBERS: Final = ("rate", "errors")

_FORM: Final = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_COMPARE: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MS_OF_UNIT: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class ExpectationError(ValueError):
    """The text is no expectation; the message says what one looks like."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure's name, how it is compared, and with what; durations are in ms."""

    text: str
    name: str
    sign: str
    bound: float

    def check(self, figures: Mapping[str, float | None]) -> str | None:
        """``None`` if it holds for the figures, else a line that says what the figure is."""
        value = figures[self.name]
        if value is None:
            return f"expected {self.text}, but nothing was measured for {self.name}"
        if _COMPARE[self.sign](value, self.bound):
            return None
        unit = " ms" if self.name in DURATIONS else ""
        return f"expected {self.text}, but {self.name} is {value:.6g}{unit}"


def parse_expectation(text: str) -> Expectation:
    """Parse ``NAME<BOUND``. Raises ``ExpectationError``."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ExpectationError(f"{text!r} is no expectation such as p99<20ms, rate>5000, errors<1")
    name, sign, number, unit = match.groups()
    if name in DURATIONS:
        if unit not in _MS_OF_UNIT:
            raise ExpectationError(f"{text!r}: {name} needs a unit: us, ms or s")
        return Expectation(text.strip(), name, sign, float(number) * _MS_OF_UNIT[unit])
    if name not in NUMBERS:
        raise ExpectationError(
            f"{text!r}: there is no figure {name}; there are {', '.join(NUMBERS + DURATIONS)}"
        )
    if unit:
        raise ExpectationError(f"{text!r}: {name} has no unit")
    return Expectation(text.strip(), name, sign, float(number))
