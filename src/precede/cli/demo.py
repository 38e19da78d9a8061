"""`precede demo`: an order verified, and a sabotaged one caught."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precede.verify.verdict import Verdict


def command() -> int:
    """See an order verified, a sabotaged one caught, and a bad network survived.

    \b
    Example:
      precede demo
    """
    return max(compare_chats(), compare_worlds())


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


def compare_worlds() -> int:
    """One lossy, reordering, crashing world, with order and without."""
    from precede.experiments.simulation import simulate

    print("\nNow eight nodes on a network that loses, doubles and reorders packets; two of them crash.")
    print("The same world twice: with vector clocks, and with delivery on arrival.\n")
    ordered = simulate("small-office", "vector_clock", seed=7)
    arrival = simulate("small-office", "unordered", seed=7)
    kept, broken = ordered.verify(), arrival.verify("causal")
    print(side_by_side(("vector_clock", kept), ("unordered", broken)))
    for name, run in (("vector_clock", ordered), ("unordered", arrival)):
        found = run.measures()
        print(
            f"  {name:<12}  {found['broadcasts']} broadcasts, {found['crashed']} crashes,"
            f" a message is {found['age_us_mean'] / 1000:.0f} ms old when it is shown"
        )
    if broken.first is not None:
        print(f"\nWhat happens without order, for example:\n{broken.first.story}")
    print("\nRun it yourself:  precede simulate small-office --protocol unordered --seed 7 --out out/office")
    print("                  precede verify out/office --order causal")
    return 0 if kept.holds and broken.verdict == "violated" else 1


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
