"""A malicious member with valid keys does to each protocol what docs/security.md says, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import inspect

from precede.core.messages import Packet
from precede.core.node import Context
from precede.protocols import registry
from tests.hostile.members import Combination, Outcome, attack, combinations, quick_combinations

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
LONGEST_CALL_S = 0.1
MOST_MEMORY_MIB = 300


def admitted_harms() -> dict[str, tuple[set[str], set[str]]]:
    """What docs/security.md says that a liar can do to each protocol, and to all protocols over some
    disseminations: without equivocation, and with it.
    """
    rows = re.findall(r"^\| (`[a-z_, `]+`) \| ([a-z, ]+) \| ([a-z, ]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {
        name: (set(plain.split(", ")) - {"nothing"}, set(equivocating.split(", ")) - {"nothing"})
        for names, plain, equivocating in rows
        for name in names.replace("`", "").split(", ")
    }


def harms(outcome: Outcome) -> set[str]:
    return {name for name in ("lost", "doubled", "forged") if getattr(outcome, name)}


def check(combination: Combination, packets: int, seed: int, equivocates: bool) -> Outcome:
    outcome = attack(combination, packets, seed, equivocates)
    check_harms(outcome, combination, equivocates)
    assert outcome.passed > packets // 40, outcome
    return outcome


def check_harms(outcome: Outcome, combination: Combination, equivocates: bool = False) -> None:
    admitted = admitted_harms()
    over = admitted.get(combination.dissemination, (set(), set()))
    assert harms(outcome) <= admitted[combination.protocol][equivocates] | over[equivocates], outcome
    assert outcome.raised == 0, outcome
    assert outcome.framed == 0, outcome
    assert outcome.memory_mib < MOST_MEMORY_MIB, outcome
    assert outcome.messages > 20, outcome


def test_the_page_admits_something_about_every_protocol_and_forgery_nowhere() -> None:
    admitted = admitted_harms()
    assert set(registry.names()) <= set(admitted) <= {*registry.names(), *registry.disseminations()}
    assert not any("forged" in harms for pair in admitted.values() for harms in pair)


def test_the_page_counts_the_combinations() -> None:
    orderings = [name for name in registry.names() if registry.find(name).ordering is not None]
    others = len(registry.names()) - len(orderings)
    joined = len(orderings) * len(registry.disseminations())
    assert len(combinations()) == joined + others
    assert f"all {joined + others} combinations" in PAGE.read_text().replace("\n", " ")
    assert {each.protocol for each in quick_combinations()} == set(registry.names())
    assert {each.dissemination for each in quick_combinations()} == {"", *registry.disseminations()}


@pytest.mark.parametrize("combination", quick_combinations(), ids=str)
def test_a_liar_does_only_what_the_page_admits(combination: Combination) -> None:
    check(combination, 600, 1, equivocates=False)


@pytest.mark.parametrize("combination", quick_combinations(), ids=str)
def test_a_liar_that_equivocates_does_only_what_the_page_admits(combination: Combination) -> None:
    check(combination, 200, 2, equivocates=True)


SKIPPED_NUMBERS = [
    (Combination("causal_barrier", "gossip"), 203),
    (Combination("delta_causal", "gossip"), 203),
    (Combination("causal_barrier", "direct"), 104),
]


@pytest.mark.parametrize(("combination", "seed"), SKIPPED_NUMBERS, ids=str)
def test_a_liar_that_skips_numbers_of_its_stream(combination: Combination, seed: int) -> None:
    """Its later message was delivered first; the earlier one set the stream back, or was awaited for ever."""
    check_harms(attack(combination, 1262, seed), combination)


@pytest.mark.parametrize("combination", quick_combinations(), ids=str)
def test_a_liar_whose_messages_pass_every_check(combination: Combination) -> None:
    check_harms(attack(combination, 300, 0, subtle=True), combination)


@pytest.mark.long
@pytest.mark.parametrize("combination", combinations(), ids=str)
def test_many_liars_whose_messages_pass_every_check(combination: Combination) -> None:
    for seed in range(1, 21):
        check_harms(attack(combination, 600, seed, subtle=True), combination)


@pytest.mark.long
@pytest.mark.parametrize("equivocates", [False, True])
def test_long_attacks_do_only_what_the_page_admits(equivocates: bool) -> None:
    seen: dict[str, set[str]] = {name: set() for name in registry.names()}
    for combination in combinations():
        for seed in range(4):
            outcome = check(combination, 10_000, 100 + seed, equivocates)
            assert outcome.slowest.cpu_s < LONGEST_CALL_S, outcome
            seen[combination.protocol] |= harms(outcome)
    assert {"lost", "doubled"} <= seen["was"] | seen["ck"]  # the attacks are strong enough to show some of it
    assert ("lost" in seen["hash_dag"]) == equivocates


def integers_without_range(declared: Any, where: str, inside: frozenset[Any]) -> Iterator[str]:
    """The places in a declared type where any whole number would be accepted."""
    match declared:
        case inspect.IntType(ge=low, le=high):
            if low is None or high is None:
                yield where
        case inspect.FloatType(ge=low, le=high):
            if low is None or high is None:
                yield where
        case inspect.AnyType() if not where.endswith(".stamp"):  # the ordering declares the type of stamps
            yield where
        case inspect.Metadata(type=inner):
            yield from integers_without_range(inner, where, inside)
        case inspect.UnionType(types=parts) | inspect.TupleType(item_types=parts):
            for part in parts:
                yield from integers_without_range(part, where, inside)
        case inspect.VarTupleType(item_type=item) | inspect.FrozenSetType(item_type=item):
            yield from integers_without_range(item, where, inside)
        case inspect.DictType(key_type=key, value_type=value):
            yield from integers_without_range(key, where, inside)
            yield from integers_without_range(value, where, inside)
        case inspect.StructType(cls=cls, fields=fields) if cls not in inside:
            for field in fields:
                yield from integers_without_range(field.type, f"{cls.__name__}.{field.name}", inside | {cls})


@pytest.mark.parametrize("combination", combinations(), ids=str)
def test_every_integer_on_the_wire_has_a_declared_range(combination: Combination) -> None:
    entry = registry.find(combination.protocol)
    options = {"dissemination": combination.dissemination} if combination.dissemination else {}
    node = registry.make_entry(entry, entry.roles[0], Context(1, (0, 1, 2), options, Random(1), 0))
    packets, stamps = registry.wire_types(entry, node, combination.dissemination or "direct")
    kinds: list[tuple[str, Any]] = [(packet.__name__, packet) for packet in packets]
    if combination.dissemination:
        kinds.append(("stamp", tuple[stamps, ...]))
    assert all(issubclass(packet, Packet) for packet in packets)
    for name, kind in kinds:
        assert list(integers_without_range(inspect.type_info(kind), name, frozenset())) == []
