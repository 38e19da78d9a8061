"""Neighbours, channels and who is let in."""
