"""What a profile promises holds on a simulated radio; settings that do not fit are refused in one line."""

from __future__ import annotations

import pytest

import precede
from precede.core.errors import BadInput
from tests.vectors.profiles import MEMBERS, measure


def test_a_message_on_lora_takes_at_most_600_bytes_and_silence_5_bytes_a_second() -> None:
    measured = measure("lora", 4)
    assert measured.message <= 600
    assert measured.idle <= 5
    assert [len(each) for each in measured.delivered] == [4] * MEMBERS


@pytest.mark.parametrize(("profile", "messages"), [("lora", 4), ("ble", 8)])
def test_everything_arrives_over_a_radio_that_loses_a_tenth(profile: str, messages: int) -> None:
    measured = measure(profile, messages, loss=0.1, seed=3)
    sent = sorted(b"%030d" % number for number in range(messages))
    assert [sorted(each) for each in measured.delivered] == [sent] * MEMBERS


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_every_profile_delivers_over_a_radio_that_loses_a_fifth(seed: int) -> None:
    for profile in ("lan", "internet", "ble", "lora"):
        measured = measure(profile, 16, loss=0.2, seed=seed)
        assert [len(each) for each in measured.delivered] == [16] * MEMBERS, profile


def test_profiles_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadInput, match="profile: 'wifi' is none of lan, internet, ble, lora"):
        precede.join("picnic", "ana", key=None, profile="wifi")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="profile='lora' is for the orders none, fifo, causal and delta"):
        precede.join("picnic", "ana", key=None, profile="lora", order="total", members=["ben"])


def test_what_the_application_sets_goes_before_the_profile() -> None:
    given = {"key": None, "profile": "lora", "beacon": 2.0, "options": {"digest": "1s"}}
    group = precede.join("picnic", "ana", **given)  # type: ignore[arg-type]
    assert group._settings.beacon == 2.0
    assert group.driver.node.dissemination._announcements._shortest == 1_000_000  # type: ignore[attr-defined]
    assert group._transports[0].largest == 200
