"""The errors a caller can do something about."""

from __future__ import annotations


class BadInput(ValueError):
    """Something the user wrote cannot be used: one line that names the place and the cause (exit code 2)."""


class Refused(ValueError):
    """A node will not take this input (an empty destination set, not joined yet); its state is unchanged."""


class NotYet(Refused):
    """A node will not take this input now; it may take the same input later (a host that has not joined)."""


class Unavailable(RuntimeError):
    """A part that was not installed is needed; the text is the line that installs it (exit code 3)."""
