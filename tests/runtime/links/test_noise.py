"""The Noise handshake against published test vectors, and against forged messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from precede.runtime.links.noise import KKPSK0, Handshake, NoiseError, Pattern, public_bytes

VECTORS = Path("/usr/share/gocode/src/github.com/flynn/noise/vectors.txt")
SUITE = "_25519_ChaChaPoly_BLAKE2s"

MESSAGES = {
    "NN": "e / e ee",
    "KN": "e / e ee se",
    "NK": "e es / e ee",
    "KK": "e es ss / e ee se",
    "NX": "e / e ee s es",
    "KX": "e / e ee se s es",
    "XN": "e / e ee / s se",
    "IN": "e s / e ee se",
    "XK": "e es / e ee / s se",
    "IK": "e es s ss / e ee se",
    "XX": "e / e ee s es / s se",
    "IX": "e s / e ee se s es",
    "N": "e es",
    "K": "e es ss",
    "X": "e es s ss",
}


def pattern(name: str) -> Pattern:
    """A pattern of the specification, with its pre-shared key in the place that the name gives."""
    base, _, place = name.partition("psk")
    messages = [tokens.split() for tokens in MESSAGES[base].split(" / ")]
    if place == "0":
        messages[0].insert(0, "psk")
    elif place:
        messages[int(place) - 1].append("psk")
    responder_known = base in ("N", "K", "X") or base[1:] == "K"
    return Pattern(name, base[0] == "K", responder_known, tuple(map(tuple, messages)))


def vectors() -> Iterator[dict[str, str]]:
    if not VECTORS.is_file():
        return
    for block in VECTORS.read_text().strip().split("\n\n"):
        vector = dict(line.split("=", 1) for line in block.split("\n"))
        if vector["handshake"].endswith(SUITE):
            yield vector


def key(vector: dict[str, str], name: str) -> X25519PrivateKey | None:
    text = vector.get(name)
    return None if text is None else X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def side(vector: dict[str, str], initiator: bool) -> Handshake:
    mine, theirs = ("init", "resp") if initiator else ("resp", "init")
    shape = pattern(vector["handshake"].removeprefix("Noise_").removesuffix(SUITE))
    known = shape.responder_known if initiator else shape.initiator_known
    other = key(vector, f"{theirs}_static")
    psk = vector.get("preshared_key")
    return Handshake(
        shape,
        initiator,
        bytes.fromhex(vector.get("prologue", "")),
        static=key(vector, f"{mine}_static"),
        remote_static=public_bytes(other) if known and other is not None else None,
        psk=None if psk is None else bytes.fromhex(psk),
        ephemeral=key(vector, f"gen_{mine}_ephemeral"),
    )


@pytest.mark.skipif(not VECTORS.is_file(), reason="Debian's golang-github-flynn-noise-dev is not installed")
def test_every_published_vector_of_this_suite() -> None:
    count = 0
    for vector in vectors():
        count += 1
        initiator, responder = side(vector, True), side(vector, False)
        ciphers = None
        number = transported = 0
        while f"msg_{number}_payload" in vector:
            payload = bytes.fromhex(vector[f"msg_{number}_payload"])
            expected = vector[f"msg_{number}_ciphertext"]
            if not initiator.finished:
                writer, reader = (initiator, responder) if initiator.my_turn else (responder, initiator)
                message = writer.write(payload)
                assert message.hex() == expected
                assert reader.read(message) == payload
            else:
                # the file's first transport message uses the first key of Split, whoever spoke last
                ciphers = ciphers or (initiator.split(), responder.split())
                (to_responder, from_responder), (to_initiator, from_initiator) = ciphers
                first = transported % 2 == 0
                sealed = (to_responder if first else to_initiator).encrypt(payload)
                assert sealed.hex() == expected
                assert (from_initiator if first else from_responder).decrypt(sealed) == payload
                transported += 1
            number += 1
        assert initiator.hash == responder.hash
    assert count == 240


def pair(prologue: bytes = b"", psk: bytes = bytes(32)) -> tuple[Handshake, Handshake]:
    ana, ben = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    return (
        Handshake(KKPSK0, True, prologue, static=ana, remote_static=public_bytes(ben), psk=psk),
        Handshake(KKPSK0, False, prologue, static=ben, remote_static=public_bytes(ana), psk=psk),
    )


def test_a_forged_answer_does_not_spoil_the_handshake() -> None:
    ana, ben = pair()
    assert ben.read(ana.write(b"early")) == b"early"
    answer = ben.write(b"late")
    for place in range(len(answer)):
        forged = answer[:place] + bytes((answer[place] ^ 1,)) + answer[place + 1 :]
        with pytest.raises(NoiseError):
            ana.read(forged)
    for length in range(len(answer)):
        with pytest.raises(NoiseError):
            ana.read(answer[:length])
    assert ana.read(answer) == b"late"
    to_ben, _ = ana.split()
    _, from_ana = ben.split()
    assert from_ana.decrypt(to_ben.encrypt(b"data", b"header"), b"header") == b"data"


def test_keys_of_low_order_are_refused() -> None:
    ana, _ = pair()
    _, ben = pair()
    message = ana.write()
    with pytest.raises(NoiseError):
        ben.read(bytes(32) + message[32:])


@pytest.mark.parametrize("other", [{"prologue": b"x"}, {"psk": b"\1" * 32}])
def test_another_prologue_or_group_key_is_refused(other: dict[str, bytes]) -> None:
    ana_key, ben_key = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    given = {"prologue": b"", "psk": bytes(32)}

    def make(initiator: bool, settings: dict[str, bytes]) -> Handshake:
        mine, theirs = (ana_key, ben_key) if initiator else (ben_key, ana_key)
        return Handshake(
            KKPSK0,
            initiator,
            settings["prologue"],
            static=mine,
            remote_static=public_bytes(theirs),
            psk=settings["psk"],
        )

    with pytest.raises(NoiseError):
        make(False, given | other).read(make(True, given).write())
    make(False, given).read(make(True, given).write())


def test_the_two_messages_fit_a_hundred_byte_frame() -> None:
    ana, ben = pair()
    first = ana.write(bytes(8))
    assert len(first) == 56
    ben.read(first)
    assert len(ben.write()) == 48
