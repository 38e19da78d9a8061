"""Metrics as values: a family has a name, a kind, a meaning and its samples."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["counter", "gauge"]
Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a label's name and its value."""


class Family(Struct, frozen=True):
    """One metric with all its samples, by their labels."""

    name: str
    kind: Kind
    meaning: str
    samples: dict[Labels, float]


def single(name: str, kind: Kind, meaning: str, value: float) -> Family:
    return Family(name, kind, meaning, {(): value})


def labelled(name: str, kind: Kind, meaning: str, label: str, values: Mapping[str, float]) -> Family:
    """Return a family with one label, which takes the keys of `values`."""
    return Family(name, kind, meaning, {((label, key),): value for key, value in sorted(values.items())})


def with_labels(families: Iterable[Family], labels: Labels) -> list[Family]:
    """Return families with more labels on every sample, before their own."""
    return [
        Family(each.name, each.kind, each.meaning, {labels + own: value for own, value in each.samples.items()})
        for each in families
    ]


def joined(families: Iterable[Family]) -> list[Family]:
    """Return families with the samples of those that share a name in one, in the order of first appearance."""
    samples: dict[str, dict[Labels, float]] = {}
    first: dict[str, Family] = {}
    for each in families:
        first.setdefault(each.name, each)
        samples.setdefault(each.name, {}).update(each.samples)
    return [Family(each.name, each.kind, each.meaning, samples[each.name]) for each in first.values()]
