"""`precede demo`: an order verified, and a sabotaged one caught."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precede.verify.verdict import Verdict


def command() -> int:
    """Verify a small bundled history, catch a sabotaged copy, and tell what went wrong.

    \b
    Example:
      precede demo
    """
    return compare_chats()


def compare_chats() -> int:
    """A chat as four people saw it, and a copy in which one phone shows messages as they come in."""
    from importlib.resources import as_file, files

    from precede.verify.witness import verify

    verdicts = []
    with as_file(files("precede.cli") / "histories") as folder:
        for name in ("chat.csv", "chat-sabotaged.csv"):
            verdicts.append(verify(folder / name, "causal"))
        kept, sabotaged = verdicts
        print("Four people chat. Each phone logs what it sends and what it shows, in its own order.")
        print("In the second log dora's phone shows messages as they arrive, not in causal order.\n")
        print(side_by_side(("kept in order", kept), ("sabotaged", sabotaged)))
        if sabotaged.first is not None:
            print(f"\nWhat went wrong:\n{sabotaged.first.story}")
        print("\nThe logs are plain CSV. Look at one, change it, verify it:")
        print(f"  precede verify {folder / 'chat-sabotaged.csv'}")
    return 0 if kept.holds and sabotaged.verdict == "violated" else 1


def side_by_side(*told: tuple[str, Verdict]) -> str:
    """Verdicts in columns."""
    columns = [
        [
            title,
            "-" * len(title),
            f"{verdict.order} order: {verdict.verdict}",
            f"{verdict.rows:,} rows, {verdict.deliveries_checked:,} deliveries",
            f"{verdict.violations:,} violation{'' if verdict.violations == 1 else 's'}",
        ]
        for title, verdict in told
    ]
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  " + "    ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    )
