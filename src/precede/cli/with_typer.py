"""Builds the typer application of a verb, which shows help and explains mistakes in a command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from precede.cli.parameters import Argument, Group, Option


def typer_app(verb: Callable[..., Any] | Group) -> typer.Typer:
    """Return the application of a verb: of its function, or of a group of functions."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    if isinstance(verb, Group):
        assert verb.described is not None
        app.callback()(verb.described)
        for name, function in verb.commands.items():
            app.command(name)(declared_for_typer(function))
    else:
        app.command(no_args_is_help=_needs_arguments(verb))(declared_for_typer(verb))
    return app


def _needs_arguments(function: Callable[..., Any]) -> bool:
    """Return whether a verb has a required argument. If so, calling it without arguments shows its help."""
    return any(p.default is inspect.Parameter.empty for p in inspect.signature(function).parameters.values())


def declared_for_typer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like this one whose parameters are declared as typer reads them."""
    annotations = {
        name: _for_typer(annotation)
        for name, annotation in get_type_hints(function, include_extras=True).items()
    }

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    signature = inspect.signature(function)
    called.__annotations__ = annotations
    called.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(annotation=annotations.get(name, parameter.annotation))
            for name, parameter in signature.parameters.items()
        ]
    )
    return called


def _for_typer(annotation: Any) -> Any:
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, declared = get_args(annotation)
    limits = {"help": declared.help, "metavar": declared.metavar, "min": declared.min, "max": declared.max}
    if isinstance(declared, Option):
        return Annotated[kind, typer.Option(*declared.names, **limits)]
    assert isinstance(declared, Argument)
    return Annotated[kind, typer.Argument(**limits)]
