"""Small worlds for the tests of play, one for each kind of network, and things that a player does in them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from precede.experiments.run import Run
from precede.experiments.scenario import read_scenario
from precede.play.record import Input, Record
from precede.play.session import Session

SECOND = 1_000_000

POINTS = """
[world]
kind = "point_to_point"
nodes = 5
delay = "uniform(0.2, 3)"
[workload]
poisson = "2s"
until = "20s"
replies = 0.1
[run]
protocol = "vector_clock"
end = "40s"
"""
WALK = """
[world]
kind = "contacts"
generator = "random-waypoint"
nodes = 8
duration = "2min"
field = [120, 120]
bandwidth = 2000
[workload]
every = "6s"
first = "2s"
[run]
protocol = "causal_barrier"
"""
FIELD = """
[world]
kind = "flood"
nodes = 6
field = [150, 150]
jitter = "uniform(0, 1)"
[workload]
poisson = "4s"
until = "20s"
[run]
protocol = "drift"
end = "40s"
"""
CELLS = """
[world]
kind = "cellular"
stations = 2
hosts = 3
radio = "lossy"
radio_delay = "uniform(0.05, 0.9)"
movement = "moves"
moves = [
  { at = "0s", host = "h0", cell = "s0" }, { at = "0s", host = "h1", cell = "s0" },
  { at = "0s", host = "h2", cell = "s1" }, { at = "9s", host = "h1", cell = "s1" },
]
[workload]
poisson = "3s"
until = "20s"
[run]
protocol = "was"
end = "40s"
"""
SWITCHED = """
[world]
kind = "switched"
nodes = 8
[workload]
poisson = "1s"
until = "10s"
replies = 0.1
[run]
protocol = "vcube"
end = "20s"
"""
GROUPS = POINTS.replace("replies = 0.1", "to = [1, 3]").replace("vector_clock", "prs")
SHORT_LIVES = WALK.replace('"causal_barrier"', '"delta_causal"\noptions = { lifetime = "20s" }')
WORLDS = {
    "points": POINTS,
    "walk": WALK,
    "field": FIELD,
    "cells": CELLS,
    "switched": SWITCHED,
    "groups": GROUPS,
    "short_lives": SHORT_LIVES,
}


def run_of(folder: Path, world: str, seed: int = 1) -> Run:
    path = folder / f"{world}.toml"
    path.write_text(WORLDS[world], encoding="utf-8")
    return read_scenario(str(path), seed=seed)


def play_at_random(session: Session, random: Random, count: int = 12) -> None:
    """Let time pass in uneven steps, and do `count` random things."""
    names = session.ordered.names
    speakers = [names[node] for node in session.ordered.prepared.built.all_sources()]
    for number in range(count):
        for _ in range(random.randint(0, 3)):
            session.advance_to(session.now + random.randint(0, SECOND))
        a, b = random.sample(names, 2)
        action = random.choice(["say", "say", "say", "crash", "restart", "cut", "mend"])
        at = session.now
        if action == "say":
            item = Input(at_us=at, action="say", node=random.choice(speakers), text=f"number {number}")
        elif action in ("cut", "mend"):
            item = Input(at_us=at, action=action, node=a, peer=b)
        else:
            item = Input(at_us=at, action=action, node=a)
        session.apply(item)
    session.advance_to(session.now + 3 * SECOND)


def record_of(*inputs: Input, end: int) -> Record:
    return Record(end_us=end, inputs=inputs)
