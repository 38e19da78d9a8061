"""Precede: ordered broadcast for networks that move."""

__version__ = "0.1.0"
