"""Helpers for modules that run compiled with mypyc (`make compile`) or as plain Python."""

from types import ModuleType


def read_i64_le(data: bytes, place: int) -> int:
    """Read the signed 64-bit number at byte `place`: the plain Python form of `librt.strings.read_i64_le`."""
    return int.from_bytes(data[place : place + 8], "little", signed=True)


def is_compiled(module: ModuleType) -> bool:
    """True if the module was loaded as machine code, not as Python source."""
    return not str(module.__file__).endswith(".py")
