"""Somebody's own protocol, found through its entry point: a vector clock that can raise or kill its process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec

from precede.protocols.layered import vector_clock
from precede.protocols.registry import Option


def build(context):
    how = context.options["explode"]
    if how == "raise":
        raise RuntimeError("boom")
    if how == "die" or (how == "die_once" and not Path(context.options["mark"]).exists()):
        if context.options["mark"]:
            Path(context.options["mark"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return vector_clock.VectorClock(context)


ENTRY = msgspec.structs.replace(
    vector_clock.ENTRY,
    name="saboteur",
    ordering=build,
    options={
        **vector_clock.ENTRY.options,
        "explode": Option("choice", "no", "what goes wrong", ("no", "raise", "die", "die_once")),
        "mark": Option("text", "", "a file that says that it died once"),
    },
)
