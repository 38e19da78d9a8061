"""Ed25519 signatures: the one place where they are made and checked.

libsodium checks a signature in half the time that OpenSSL needs. Members of a group must agree on what is
signed, so all of them use one rule, libsodium's: it accepts only the canonical form of keys and signatures, and
no point of small order (docs/decisions/0032).
"""

from typing import Final

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

SEED_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class SigningKey:
    """The key pair of a secret seed. Raises ValueError if the seed has another length than 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"expected {SEED_BYTES} secret bytes, got {len(seed)}")
        self.public: bytes
        self.public, self._secret = crypto_sign_seed_keypair(seed)

    def sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes: always the same for the same bytes."""
        return crypto_sign(content, self._secret)[:SIGNATURE_BYTES]


def is_signed(public: bytes, signature: bytes, content: bytes) -> bool:
    """Return whether the owner of a public key signed these bytes. A malformed key has signed nothing."""
    if len(public) != PUBLIC_BYTES or len(signature) != SIGNATURE_BYTES:
        return False  # the library reads as many bytes as a key has, whatever it is given
    try:
        crypto_sign_open(signature + content, public)
    except BadSignatureError:
        return False
    return True
