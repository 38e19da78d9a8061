"""The same world without order: `unordered` where it runs, else the chosen one delivering on arrival."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from precede.core.effects import Arrive, Deliver, Effect, Effects
from precede.core.identity import MessageId
from precede.core.node import Context, Node
from precede.experiments.run import Run
from precede.protocols import registry
from precede.protocols.around import Around
from precede.protocols.registry import Entry

WITHOUT_ORDER = "unordered"


class OnArrival(Around[Node]):
    """Hands each message to the application when it arrives; the node inside goes on as it would."""

    def __init__(self, inner: Node) -> None:
        super().__init__(inner)
        self._delivered: dict[MessageId, None] = {}

    def passed(self, effects: Effects) -> Effects:
        changed: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Deliver):
                self._deliver(effect.message, changed)
                continue
            changed.append(effect)
            if isinstance(effect, Arrive):
                for message in effect.messages:
                    self._deliver(message, changed)
        return changed

    def _deliver(self, message: Any, effects: list[Effect]) -> None:
        if message.id not in self._delivered:
            self._delivered[message.id] = None
            effects.append(Deliver(message))

    def waiting(self) -> tuple[()]:
        return ()


def without_order(run: Run) -> tuple[Run, Entry[Any]]:
    """Return the run of the same world without order, and the entry that builds its nodes."""
    chosen, plain = registry.find(run.protocol), registry.find(WITHOUT_ORDER)
    kind = str(run.world["kind"])
    if kind not in plain.worlds:
        return run, _on_arrival(chosen)
    known = registry.options_of_entry(
        plain, str(run.options.get("dissemination", registry.usual_dissemination(kind)))
    )
    options = {key: value for key, value in run.options.items() if key in known or key == "dissemination"}
    return replace(run, protocol=WITHOUT_ORDER, options=options), plain


def _on_arrival(entry: Entry[Any]) -> Entry[Any]:
    def build(role: str, context: Context[Any]) -> Node:
        return OnArrival(registry.build_node(entry, role, context))

    title = f"{entry.name} that delivers on arrival"
    return replace(entry, title=title, order="none", build=build, ordering=None)
