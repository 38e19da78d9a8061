"""Helpers for modules that run compiled with mypyc (`make compile`) or as plain Python."""

from types import ModuleType


def read_i64_le(data: bytes, place: int) -> int:
    """Read the signed 64-bit number at byte `place`: the plain Python form of `librt.strings.read_i64_le`."""
    return int.from_bytes(data[place : place + 8], "little", signed=True)


def read_i32_le(data: bytes, place: int) -> int:
    """Read the signed 32-bit number at byte `place`: the plain Python form of `librt.strings.read_i32_le`."""
    return int.from_bytes(data[place : place + 4], "little", signed=True)


def read_i32_be(data: bytes, place: int) -> int:
    """Read the signed 32-bit number at byte `place`, the highest byte first, as `librt.strings` does."""
    return int.from_bytes(data[place : place + 4], "big", signed=True)


def read_i64_be(data: bytes, place: int) -> int:
    """Read the signed 64-bit number at byte `place`, the highest byte first, as `librt.strings` does."""
    return int.from_bytes(data[place : place + 8], "big", signed=True)


def is_compiled(module: ModuleType) -> bool:
    """True if the module was loaded as machine code, not as Python source."""
    return not str(module.__file__).endswith(".py")
