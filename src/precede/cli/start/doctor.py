"""`precede doctor`: what is installed, compiled, missing or slow, and the line that mends it."""

import json
import sys
from typing import Annotated, Final

from precede.cli.parameters import Option
from precede.cli.start.installation import (
    Check,
    State,
    check_base,
    check_compiled,
    check_extras,
    compiled_modules,
    installed_bytes,
)
from precede.cli.start.machine import (
    check_browser,
    check_clock,
    check_data,
    check_folders,
    check_java,
    check_numba_cache,
)
from precede.cli.terminal import Colour, painted

_COLOURS: Final[dict[State, Colour]] = {"ok": "green", "note": "bold", "slow": "yellow", "wrong": "red"}


def command(
    extra: Annotated[list[str] | None, Option(help="an extra that must work; may be repeated")] = None,
    sizes: Annotated[bool, Option("--sizes", help="add the installed size of each extra")] = False,
    as_json: Annotated[bool, Option("--json", help="print the checks as one JSON object")] = False,
) -> int:
    """Say what is installed, what is missing or slow, and the line that mends it.

    Without --extra, an extra that is not installed is only noted. Exit code 1 if something that is needed does
    not work.

    \b
    Example:
      precede doctor
      precede doctor --extra spark --extra report
    """
    checks = all_checks(extra or [])
    extras = [check.subject.strip("[]") for check in checks if check.subject.startswith("[")]
    bytes_of = {name: installed_bytes(name) for name in extras} if sizes else {}
    works = all(check.state != "wrong" for check in checks)
    if as_json:
        checked = [check._asdict() for check in checks]
        result = {"works": works, "checks": checked, "compiled": list(compiled_modules())}
        print(json.dumps(result | ({"bytes": bytes_of} if sizes else {}), indent=2))
    else:
        for check in checks:
            state = painted(f"{check.state:<5}", _COLOURS[check.state], sys.stdout)
            print(f"{state}  {check.subject:<11}  {check.text}")
            if check.mend:
                print(f"{'':<20}  mend: {check.mend}")
        for name, size in bytes_of.items():
            print(f"size   {f'[{name}]':<11}  {size / 1e6:,.0f} MB with everything that it needs")
        print("\nEverything that is needed works." if works else "\nSomething that is needed does not work.")
    return 0 if works else 1


def all_checks(chosen: list[str]) -> list[Check]:
    wants_all = "all" in chosen or "dev" in chosen
    return [
        *check_base(),
        *check_extras(chosen),
        check_compiled(),
        check_java(is_needed=wants_all or "spark" in chosen),
        check_browser(is_needed="dev" in chosen),
        check_numba_cache(),
        check_data(),
        *check_folders(),
        check_clock(),
    ]
