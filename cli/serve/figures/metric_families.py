"""Metric families of one value, of one label, and of a histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from coordinator.runtime.loop.stats import Histogram


@dataclass(frozen=True, slots=True)
class HistogramFigures:
    """A histogram at one moment; counts are per bucket, not cumulative."""

    counts: tuple[int, ...]
    sum_s: float
    bounds_s: tuple[float, ...] = Histogram.BOUNDS_S


def copy_histogram(histogram: Histogram) -> HistogramFigures:
    """A histogram as it is now."""
    return HistogramFigures(tuple(histogram.counts), histogram.sum_s, histogram.bounds_s)


def make_gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


def make_counter(name: str, text: str, value: float) -> Metric:
    """A counter without labels."""
    return CounterMetricFamily(name, text, value=value)


def make_labelled_gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """A gauge for each value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family


def make_labelled(name: str, text: str, label: str, counts: Mapping[str, float]) -> Metric:
    """A counter for each value of a label."""
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([key], count)
    return family


def copy_histograms(histograms: Mapping[str, Histogram]) -> dict[str, HistogramFigures]:
    """Histograms by name as they are now."""
    return {name: copy_histogram(histogram) for name, histogram in histograms.items()}


def make_histogram(name: str, text: str, figures: HistogramFigures) -> Metric:
    """A histogram of seconds."""
    return HistogramMetricFamily(name, text, buckets=_accumulate(figures), sum_value=figures.sum_s)


def make_labelled_histogram(
    name: str, text: str, label: str, figures: Mapping[str, HistogramFigures]
) -> Metric:
    """A histogram of seconds for each value of a label."""
    family = HistogramMetricFamily(name, text, labels=[label])
    for key, each in sorted(figures.items()):
        family.add_metric([key], _accumulate(each), each.sum_s)
    return family


def _accumulate(figures: HistogramFigures) -> list[tuple[str, float]]:
    buckets: list[tuple[str, float]] = []
    seen = 0
    for bound, count in zip((*figures.bounds_s, None), figures.counts, strict=True):
        seen += count
        buckets.append(("+Inf" if bound is None else str(bound), seen))
    return buckets
