"""`arrival`: a rule that shows messages as they come, the newest at the bottom.

It is `unordered` under the name that the other rules are compared with: what it delivers last is at the bottom.
It waits for nothing, so it has nothing to expire.
"""

from typing import Final

from precede.protocols.layered.unordered import Unordered, UnorderedOptions
from precede.protocols.registry import Entry

ENTRY: Final = Entry(
    name="arrival",
    title="a rule of apps: show messages as they come",
    paper="(practice today: mesh radios and chats without sorting)",
    order="none",
    worlds=("contacts", "point_to_point", "flood"),
    options=UnorderedOptions,
    ordering=Unordered,
)
