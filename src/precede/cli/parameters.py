"""How a verb declares its parameters: `Annotated[str, Argument(help=...)]`, `Annotated[int, Option(help=...)]`.

typer reads these declarations for help, mistakes and all that is unusual (`with_typer`). It imports pydantic,
which takes longer than many a verb: so `plain_words` reads the usual command lines without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Argument:
    """Declares a parameter that is given by its position."""

    def __init__(
        self, *, help: str, metavar: str | None = None, min: float | None = None, max: float | None = None
    ) -> None:
        self.help, self.metavar, self.min, self.max = help, metavar, min, max


class Option(Argument):
    """Declares a parameter that is given by name. Without `names`, it has the name of the parameter.

    An option that is true or false then has a second name, `--no-NAME`.
    """

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
    ) -> None:
        super().__init__(help=help, metavar=metavar, min=min, max=max)
        self.names = names


class Group:
    """A verb that has verbs of its own: `precede keys make`."""

    def __init__(self) -> None:
        self.described: Callable[..., Any] | None = None
        self.commands: dict[str, Callable[..., Any]] = {}

    def callback(self) -> Callable[[Function], Function]:
        """Take a function whose docstring describes the group."""

        def take(function: Function) -> Function:
            self.described = function
            return function

        return take

    def command(self, name: str | None = None) -> Callable[[Function], Function]:
        """Add a function as a verb of the group, with the name of the function unless another is given."""

        def take(function: Function) -> Function:
            self.commands[name or function.__name__.replace("_", "-")] = function
            return function

        return take
