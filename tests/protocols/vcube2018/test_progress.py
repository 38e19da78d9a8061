"""Rows of masks compared with a plain vector: after any steps both say the same (vcube2018, section 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.vcube2018.prepared import Prepared, new_row, new_share, slot_of
from precede.protocols.vcube2018.progress import KEPT_ROWS, Ahead, Missing, Progress

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(0, 7), st.integers(1, KEPT_ROWS + 20)),
        st.tuples(st.just("jump"), st.integers(0, 7), st.integers(1, 3 * KEPT_ROWS)),
        st.tuples(st.just("widen"), st.integers(8, 20), st.just(0)),
        st.tuples(st.just("copy"), st.just(0), st.just(0)),
    ),
    max_size=12,
)


def message_of(source: int, number: int) -> Prepared:
    return Prepared(source, number, Message(MessageId(source, 0, number), b""), [], 1)


def rows_of(entries: dict[int, int]) -> list[tuple[int, int]]:
    """Vector entries by source as rows: masks of sources by number."""
    rows: dict[int, int] = {}
    for source, number in entries.items():
        rows[number] = rows.get(number, 0) | 1 << source
    return sorted(rows.items())


@given(STEPS)
def test_progress_equals_a_plain_vector(steps: list[tuple[str, int, int]]) -> None:
    progress, vector = Progress(8), [0] * 8
    earlier, earlier_vector = progress.copy(), vector[:]
    for step, source, count in steps:
        if step == "advance":
            for _ in range(count):
                vector[source] += 1
                progress.advance(message_of(source, vector[source]))
        elif step == "jump":
            progress.jump(source, count)
            vector[source] = max(vector[source], count)
        elif step == "widen":
            progress.widen(source)
            vector += [0] * (source - len(vector))
        else:
            earlier, earlier_vector = progress.copy(), vector[:]
        earlier_vector += [0] * (len(vector) - len(earlier_vector))
        assert progress.counts() == vector
        assert [progress.count(source) for source in range(len(vector))] == vector
        assert progress.counted == sum(vector)
        changed = {source: now for source, now in enumerate(vector) if now != earlier_vector[source]}
        assert [(row.number, row.mask) for row in progress.since(earlier)] == rows_of(changed)
        for number in range(1, max(vector) + 3):
            fewer = sum(1 << source for source, now in enumerate(vector) if now < number)
            assert progress.row(number) == fewer
            lacked = progress.lacked([new_row(number, (1 << len(vector)) - 1)])
            assert lacked == (slot_of(fewer.bit_length() - 1, number) if fewer else 0)


@given(
    st.lists(st.integers(0, 90), min_size=6, max_size=6),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.dictionaries(st.integers(0, 5), st.integers(1, 95), min_size=1),
    st.integers(0, 63),
    st.integers(0, 5),
)
def test_a_message_is_missing_if_it_is_neither_delivered_nor_received(
    delivered: list[int], ahead: list[int], entries: dict[int, int], mask: int, shift: int
) -> None:
    progress, received = Progress(6), Ahead()
    for source, count in enumerate(delivered):
        for number in range(1, count + 1):
            progress.advance(message_of(source, number))
    for source, more in enumerate(ahead):
        for number in range(delivered[source] + 1, delivered[source] + more + 1):
            received.add(number, source)
    both = [count + more for count, more in zip(delivered, ahead, strict=True)]
    assert received.received(progress) == both
    rows = [new_row(*row) for row in rows_of(entries)]
    one_missing = Missing(progress, received).one_of(rows, new_share(mask, shift))
    missing = [
        slot_of(source, number)
        for source, number in entries.items()
        if mask << shift >> source & 1 and number > both[source]
    ]
    assert (one_missing in missing) if missing else one_missing == 0


def test_a_message_passes_only_when_it_is_new_and_everything_it_names_is_counted() -> None:
    progress = Progress(4)
    first = message_of(1, 1)
    named = [new_row(1, 1 << 1), new_row(2, 1 << 2)]  # the first message of source 1, the second of source 2
    message = Prepared(0, 1, Message(MessageId(0, 0, 1), b""), named, 2)
    assert message.needs is None
    assert not progress.passes(message)
    assert progress.passes(first)
    assert not progress.passes(message)
    for number in (1, 2):
        progress.advance(message_of(2, number))
    assert progress.passes(message)
    assert not progress.passes(message), "it is counted already"
    assert progress.counted == 4
