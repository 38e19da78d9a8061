"""The networks that a world can have."""
