"""The figures of a load test: counted by each process, sent to the first one, merged there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from cli.load.figures.histogram import Histogram
from cli.load.options.expectations import LATENCIES

Json: TypeAlias = dict[str, Any]

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


@dataclass(slots=True)
class Figures:
    """Counts of a process or of all, of a second or of the whole test. Durations are in ns.

    ``latency`` counts from the intended time of a request, ``service`` from when it was sent,
    ``convergence`` from a join until its group is complete again. ``answered`` requests had no
    error and were answered within the test. ``controls`` are the requests of members beside the
    load: joins, acknowledgements, heartbeats that keep a session. ``handled`` are all that were
    answered, also before the measured part, in ``cpu_s`` of the processes; ``busy_s`` is their CPU
    time within the measured part.
    """

    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    convergence: Histogram = field(default_factory=Histogram)
    errors: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    controls: int = 0
    handled: int = 0
    cpu_s: float = 0.0
    busy_s: float = 0.0

    def merge(self, other: Figures) -> None:
        """Add the counts of another."""
        self.latency.merge(other.latency)
        self.service.merge(other.service)
        self.convergence.merge(other.convergence)
        self.errors.update(other.errors)
        self.answered += other.answered
        self.controls += other.controls
        self.handled += other.handled
        self.cpu_s += other.cpu_s
        self.busy_s += other.busy_s

    def dump(self) -> Json:
        """The counts as JSON."""
        return {
            "latency": self.latency.dump(),
            "service": self.service.dump(),
            "convergence": self.convergence.dump(),
            "errors": dict(self.errors),
            "answered": self.answered,
            "controls": self.controls,
            "handled": self.handled,
            "cpu_s": self.cpu_s,
            "busy_s": self.busy_s,
        }

    @classmethod
    def load(cls, content: Json) -> Figures:
        """The counts of which ``dump`` made the JSON."""
        return cls(
            Histogram.load(content["latency"]),
            Histogram.load(content["service"]),
            Histogram.load(content["convergence"]),
            Counter(content["errors"]),
            content["answered"],
            content["controls"],
            content["handled"],
            content["cpu_s"],
            content["busy_s"],
        )


def compute_ms(histogram: Histogram) -> dict[str, float | None]:
    """The quantiles of a histogram in ms, by name."""
    found: dict[str, float | None] = {}
    for name in LATENCIES:
        value = histogram.quantile(QUANTILES[name])
        found[name] = None if value is None else round(value / 1e6, 4)
    return found


def compute_expected(figures: Figures, seconds: float) -> dict[str, float | None]:
    """The figures that expectations name."""
    found: dict[str, float | None] = {
        "rate": figures.answered / seconds if seconds > 0 else 0.0,
        "errors": float(figures.errors.total()),
        **compute_ms(figures.latency),
    }
    for kind, histogram in (("service", figures.service), ("convergence", figures.convergence)):
        found |= {f"{kind}_{name}": value for name, value in compute_ms(histogram).items()}
    return found


def compute_report(figures: Figures, seconds: float) -> Json:
    """The figures as the result of the command has them."""
    handled = figures.handled
    return {
        "seconds": round(seconds, 3),
        "requests": figures.answered,
        "rate": round(figures.answered / seconds, 1) if seconds > 0 else 0.0,
        "errors": dict(sorted(figures.errors.items())),
        "latency_ms": compute_ms(figures.latency),
        "service_ms": compute_ms(figures.service),
        "convergence_ms": compute_ms(figures.convergence),
        "convergences": figures.convergence.count,
        "member_requests": figures.controls,
        "generator_cpu_s": round(figures.cpu_s, 3),
        "generator_cpu_us_per_request": (
            round(figures.cpu_s / handled * 1e6, 2) if handled else None
        ),
    }
