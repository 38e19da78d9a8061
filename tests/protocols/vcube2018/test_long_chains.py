"""Long lists of waiting messages are freed without touching memory of others.

A compiled class that garbage collection does not track (`acyclic`) has no header. CPython's trashcan writes
into that header when more than fifty objects are freed inside each other: it overwrites what lies before.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "precede"
FREE_LONG_CHAINS = """
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.vcube2018.awaited import Awaited, Held, Pending
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import Prepared

message = Message(MessageId(0, 0, 1), b"")
stamped, prepared = StampedMessage(message, (), 0, 0), Prepared(0, 1, message, [], 0)
for _ in range(20):
    awaited = Awaited()
    for number in range(2_000):
        awaited.hold(Held(0, number, stamped, prepared))
        awaited.lack(Pending(stamped, prepared, number))
    del awaited
print("freed")
"""


def test_a_long_list_of_waiting_messages_is_freed_without_harm() -> None:
    """Python's debug allocator notices a write before an object when that object is freed."""
    command = [sys.executable, "-X", "dev", "-c", FREE_LONG_CHAINS]
    ran = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"freed\n"), ran.stderr[-2000:]


def test_no_untracked_class_refers_to_its_own_kind() -> None:
    """Only such objects are freed inside each other in numbers."""
    linked = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "acyclic=True" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and "acyclic=True" in "".join(
                ast.unparse(decorator) for decorator in node.decorator_list
            ):
                fields = [each for each in ast.walk(node) if isinstance(each, ast.AnnAssign)]
                linked += [
                    node.name for each in fields if node.name in ast.unparse(each.annotation).split(" | ")
                ]
    assert linked == []
