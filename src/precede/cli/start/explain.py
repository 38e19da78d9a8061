"""`precede explain`: what a code means, why it happens and what to do."""

import json
from typing import Annotated

import typer

from precede.cli.start.explanations import TABLE, code_of_warning
from precede.core.errors import BadInput
from precede.core.settings import nearest


def command(
    code: Annotated[str | None, typer.Argument(help="a code such as E042; without one, all are listed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Explain the code of an error, of an unknown verdict or of a warning: what happened, why, what to do.

    \b
    Example:
      precede explain E042
      precede explain nobody_heard
    """
    if code is None:
        entries = list(TABLE.values())
    else:
        known = code_of_warning(code) or code.upper()
        if known not in TABLE:
            raise BadInput(f"no code {code!r} {nearest(code.upper(), TABLE)}")
        entries = [TABLE[known]]
    if as_json:
        keys = ("code", "title", "why", "remedy")
        print(json.dumps([{key: getattr(entry, key) for key in keys} for entry in entries], indent=2))
    elif code is None:
        print("\n".join(f"{entry.code}  {entry.title}" for entry in entries))
    else:
        (entry,) = entries
        print(f"{entry.code}: {entry.title}\n\n{entry.why}\n\n{entry.remedy}")
