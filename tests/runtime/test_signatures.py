"""What counts as a signature: RFC 8032's, in canonical form, under a key that is no point of small order."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from precede.runtime.evidence.signatures import SigningKey, is_signed

GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
FIELD = 2**255 - 19
SMALL_ORDER = [
    (1).to_bytes(32, "little"),  # the neutral element
    (FIELD - 1).to_bytes(32, "little"),  # order 2
    (0).to_bytes(32, "little"),  # order 4
    (FIELD + 1).to_bytes(32, "little"),  # the neutral element once more, not canonical
]


def test_the_second_vector_of_rfc_8032():
    key = SigningKey(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert key.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    signature = key.sign(b"\x72")
    assert signature.hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert is_signed(key.public, signature, b"\x72")
    assert not is_signed(key.public, signature, b"\x73")


def test_both_libraries_make_and_accept_the_same_signatures():
    for number in range(20):
        seed, content = bytes([number] * 32), bytes(range(number * 7))
        ours, theirs = SigningKey(seed), Ed25519PrivateKey.from_private_bytes(seed)
        assert ours.public == theirs.public_key().public_bytes_raw()
        assert ours.sign(content) == theirs.sign(content)


def test_a_second_form_of_a_signature_is_none():
    key = SigningKey(bytes(32))
    signature = key.sign(b"bread")
    scalar = int.from_bytes(signature[32:], "little") + GROUP_ORDER
    assert not is_signed(key.public, signature[:32] + scalar.to_bytes(32, "little"), b"bread")


@pytest.mark.parametrize("public", SMALL_ORDER, ids=("neutral", "order 2", "order 4", "not canonical"))
@pytest.mark.parametrize("point", SMALL_ORDER, ids=("neutral", "order 2", "order 4", "not canonical"))
def test_a_key_of_small_order_signs_nothing(public, point):
    assert not any(is_signed(public, point + bytes(32), bytes([content])) for content in range(16))


def test_elsewhere_one_signature_under_such_a_key_fits_every_message():
    key = Ed25519PublicKey.from_public_bytes(SMALL_ORDER[0])
    for content in (b"bread", b"wine"):
        key.verify(SMALL_ORDER[0] + bytes(32), content)  # raises nothing


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_keys_and_signatures_of_another_length_are_refused(size):
    key = SigningKey(bytes(32))
    assert not is_signed(key.public[:size] if size < 32 else bytes(size), key.sign(b""), b"")
    assert size == 64 or not is_signed(key.public, bytes(size), b"")
    with pytest.raises(ValueError, match="32 secret bytes"):
        SigningKey(bytes(size))
