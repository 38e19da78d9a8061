"""`precede explain`: what a code means, why it happens and what to do."""

import json
from typing import Annotated, Final

from precede.cli.parameters import Argument, Option
from precede.cli.start.explanations import TABLE, code_of_warning
from precede.core.errors import BadInput
from precede.core.settings import nearest

PAGES: Final = {
    "E002": "guides/install",
    "E011": "reference/formats",
    "E012": "reference/formats",
    "E013": "reference/scenario",
    "E014": "reference/scenario",
    "E015": "guides/which-order",
    "E016": "security",
    "E017": "reference/api",
    "E018": "reference/api",
    "E019": "guides/pipeline",
    "E020": "guides/clusters",
    "E021": "guides/reproduce",
    "E022": "guides/audit",
    "E04": "concepts/orders",
    "E062": "concepts/orders",
    "E064": "security",
    "E065": "security",
    "E066": "security",
    "E06": "reference/api",
    "E": "guides/install",
}
"""The page of the documentation that says more, by code or by the beginning of codes; the longest counts."""


def page_of(code: str) -> str:
    """Return the page that says more about a code, as a path in the documentation."""
    length = max(length for length in range(1, len(code) + 1) if code[:length] in PAGES)
    return f"docs/{PAGES[code[:length]]}.md"


def command(
    code: Annotated[str | None, Argument(help="a code such as E042; without one, all are listed")] = None,
    as_json: Annotated[bool, Option("--json", help="print as JSON")] = False,
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
        listed = [
            {**{key: getattr(entry, key) for key in keys}, "page": page_of(entry.code)} for entry in entries
        ]
        print(json.dumps(listed, indent=2))
    elif code is None:
        print("\n".join(f"{entry.code}  {entry.title}" for entry in entries))
    else:
        (entry,) = entries
        more = f"More: {page_of(entry.code)} in the repository"
        print(f"{entry.code}: {entry.title}\n\n{entry.why}\n\n{entry.remedy}\n\n{more}")
