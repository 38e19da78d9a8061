"""Settings of `join` that cannot work are refused at once, by the name of the setting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import precede


async def state() -> bytes:
    return b""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transport": precede.UdpTransport(("127.0.0.1", 0)), "lan": True}, "transport replaces bind"),
        (
            {"transport": precede.UdpTransport(("127.0.0.1", 0)), "peers": [("127.0.0.1", 5)]},
            "transport replaces",
        ),
        ({"beacon": "1s"}, "beacon: expected more than 0 seconds, got '1s'"),
        ({"beacon": float("nan")}, "beacon: expected more than 0 seconds"),
        ({"beacon": True}, "beacon: expected more than 0 seconds"),
        ({"segment": "1s", "log": "logs"}, "segment: expected more than 0 seconds"),
        ({"segment": 2.0}, "segment: there is no log"),
        ({"redact": True}, "redact: there is no log"),
        ({"on_snapshot": state, "on_restore": print}, "on_snapshot: expected a plain function, without async"),
        ({"on_snapshot": bytes, "on_restore": b""}, "on_restore: expected a plain function"),
        ({"profile": "lorra"}, r"did you mean 'lora'\?"),
        ({"lifetime": "soon", "order": "delta"}, "lifetime: not a duration: 'soon'"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(precede.BadInput, match=message):
        precede.join("picnic", "ana", key=None, **settings)


def test_requests_to_a_group_that_cannot_work_are_refused() -> None:
    async def main() -> None:
        async with precede.join("picnic", "ana", key=None) as group:
            with pytest.raises(precede.BadInput, match="since: not a duration: 'yesterday'"):
                group.history(since="yesterday")
            with pytest.raises(precede.BadInput, match=r"did you mean 'total'\?"):
                group.topic("garden", order="totl")  # type: ignore[arg-type]
            with pytest.raises(precede.BadInput, match="joined without a key"):
                group.rekey(bytes(32))
        async with precede.join("picnic", "ana", key=bytes(32)) as group:
            for secrets in ((), (b"short",), (bytes(32), "text")):
                with pytest.raises(precede.BadInput, match="rekey: expected at least one secret of 32 bytes"):
                    group.rekey(*secrets)  # type: ignore[arg-type]

    asyncio.run(main())
