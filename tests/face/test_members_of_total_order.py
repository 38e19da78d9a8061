"""`join(order="total")`: a group of two lists the other member, or both."""

from __future__ import annotations

import pytest

import precede

KEY = bytes(32)


@pytest.mark.parametrize("members", [["ben"], ["ana", "ben"], ["ben", "cleo"]])
def test_the_own_name_may_be_left_out(members: list[str]) -> None:
    assert precede.join("picnic", "ana", key=KEY, order="total", members=members).name == "ana"


def test_a_group_without_members_is_refused() -> None:
    with pytest.raises(precede.BadInput, match="needs members="):
        precede.join("picnic", "ana", key=KEY, order="total")
