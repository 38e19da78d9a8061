"""A plug-in protocol, found by its entry point: a vector clock that can raise or kill its process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from precede.protocols.layered import vector_clock
from precede.protocols.options import Durable, option


class SaboteurOptions(Durable, frozen=True, kw_only=True):
    explode: Annotated[Literal["no", "raise", "die", "die_once"], option("what goes wrong")] = "no"
    mark: Annotated[str, option("a file that is made at the first death")] = ""


def build(context):
    how = context.options.explode
    if how == "raise":
        raise RuntimeError("boom")
    if how == "die" or (how == "die_once" and not Path(context.options.mark).exists()):
        if context.options.mark:
            Path(context.options.mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return vector_clock.VectorClock(context)


ENTRY = msgspec.structs.replace(
    vector_clock.ENTRY,
    name="saboteur",
    ordering=build,
    options=SaboteurOptions,
)
