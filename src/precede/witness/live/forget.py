"""Which messages the live verifier forgets, so that its state stays bounded, and why no verdict changes by it.

Messages are forgotten in the order in which their broadcasts were counted, block by block. A block goes when
each of its messages is *settled* or *old*.

*Settled*: all members are known (`members` names them, and each has rows), and each process p to which the
message is addressed, except its source and those that have left, has the message in its past: p's clock has at
least the message's rank. For total order instead: each of them has delivered it. A source is not excepted if
the order is total, or Δ-causal and the message has a deadline. For FIFO order without destinations `members` is
not needed.

*Old*: the clock of some row is more than `retain_us` after the message's broadcast, or after its deadline if
Δ-causal order is checked.

Why this is safe, for causal order (FIFO, multicast and Δ-causal order are judged by the same clocks):

1. What is forgotten is closed under the past. A message counts only after its whole past, so the past of a
   forgotten message was counted before it and is forgotten too.
2. So no forgotten message has a remembered one in its past. A delivery of a remembered message (s, k) is late
   if the process's clock at s is at least k; a forgotten message could only have raised that clock to a
   forgotten rank, which is below k. Remembered messages are therefore judged as before.
3. A delivery of a forgotten message (s, k) at a process whose clock at s is at least k is a violation in any
   case: a duplicate if the process delivered it before, else late; and the past of a late message is in the
   clock already, so nothing need be merged. `skipped` tells the two apart,
   and `barred` which deliveries violate the destinations.
4. At its own source the past of a message is in the clock already: only the rank counts, and that is known,
   unless there is a deadline. For FIFO order without destinations the rank is all that counts anywhere.
5. Settled messages have no other deliveries than these, by processes known so far. Any other delivery of a
   forgotten message (by a process that appeared later, or one that fell behind by more than `retain_us`)
   cannot be judged. It is never guessed: the verdict becomes unknown and names the message, or violated if
   Δ-causal order is checked and all forgotten deadlines have passed by the delivering node's clock.

For total order a settled message was delivered by every open process, so a further delivery is a duplicate, and
no comparison of orders needs its steps again: `sees` keeps the latest step of every pair of processes.

So the same rows are marked as violations. A row that breaks several rules can be counted for fewer of them:
whether a forgotten message was also late or expired is not always known.

A repeated row of a forgotten message is not compared with the first one any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from precede.witness.live.ranges import Ranks
from precede.witness.live.state import LiveState, Message, Process


class Forgetting:
    """Forgets messages of one run."""

    def __init__(self, state: LiveState, retain_us: int | None, members: Sequence[str]) -> None:
        self.state, self.retain_us, self.members = state, retain_us, members

    def forget(self) -> None:
        """Forget all blocks at the beginning whose messages are settled or old."""
        facts = self.state.facts
        while facts.forgotten < facts.messages:
            number = facts.forgotten // facts.block
            end = (number + 1) * facts.block
            if end > facts.messages:
                if not self._finished():
                    return
                end = facts.messages
            everyone = self._everyone_is_known()
            messages = [self.state.messages[message] for message in range(facts.forgotten, end)]
            if not all(self._old(message) or self._settled(message, everyone) for message in messages):
                return
            for message in range(facts.forgotten, end):
                self._remember(message)
            self.state.drop_block(number)
            facts.forgotten = end

    def _finished(self) -> bool:
        return self._everyone_is_known() and not any(map(_is_open, self.state.processes))

    def _everyone_is_known(self) -> bool:
        return bool(self.members) and all(name in self.state.incarnations for name in self.members)

    def _old(self, message: Message) -> bool:
        facts = self.state.facts
        since = message.clock
        if facts.order == "delta" and message.deadline is not None:
            since = message.deadline
        if self.retain_us is None or since is None or facts.newest is None:
            return False
        if facts.order == "total" and self.members:  # agreement is judged at the end
            return False
        return facts.newest - since > self.retain_us

    def _settled(self, message: Message, everyone: bool) -> bool:
        if not everyone and (self.state.order != "fifo" or message.to is not None):
            return False
        return all(
            self._has_passed(p, process, message)
            for p, process in enumerate(self.state.processes)
            if _is_open(process)
        )

    def _has_passed(self, p: int, process: Process, message: Message) -> bool:
        if message.to is not None and process.node not in message.to:
            return True
        if self.state.order == "total":
            owner = self.state.processes[message.source]
            number = self.state.ids[owner.node, owner.incarnation, message.number]
            return self.state.delivered_at(p, number) > 0
        own = p == message.source and (self.state.order != "delta" or message.deadline is None)
        return own or process.clock.get(message.source, 0) >= message.rank

    def _remember(self, number: int) -> None:
        """Remember the number and rank of a message that is forgotten, and who had not delivered it."""
        state, message = self.state, self.state.messages[number]
        state.processes[message.source].forgotten.add(message.number)
        state.changed[f"p{message.source}"] = None
        for p, process in enumerate(state.processes):
            if not state.delivered_at(p, number):
                missed = state.missed[p]
                missed.skipped.setdefault(message.source, Ranks()).add(message.rank)
                if p != message.source and message.to is not None and process.node not in message.to:
                    missed.barred.setdefault(message.source, Ranks()).add(message.rank)
                state.changed[f"s{p}"] = None
        facts = state.facts
        facts.addressed = facts.addressed or message.to is not None
        if message.deadline is None:
            facts.undated = True
        else:
            facts.last_deadline = max(message.deadline, facts.last_deadline or message.deadline)


def _is_open(process: Process) -> bool:
    return not process.closed or bool(process.queue or process.held)
