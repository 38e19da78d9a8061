"""`precede completion`: a script that completes verbs and options in a shell, without starting Python."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from precede.cli.parameters import Argument

_BASH: Final = """\
_precede() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{verbs}"; fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _precede precede
"""


def command(
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(help="the shell")],
) -> None:
    """Print a script that completes verbs and options. Everything else is completed as a path.

    \b
    Example:
      precede completion bash >> ~/.bashrc
      precede completion zsh >> ~/.zshrc
      precede completion fish > ~/.config/fish/completions/precede.fish
    """
    words = words_of_verbs()
    if shell == "fish":
        print("\n".join(_fish(words)))
        return
    cases = "\n".join(f'    {verb}) words="{" ".join(options)}" ;;' for verb, options in words.items())
    script = _BASH.format(cases=cases, verbs=" ".join(words))
    print(f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script, end="")


def words_of_verbs() -> dict[str, list[str]]:
    """Return what may follow each verb: the verbs below it, names that it knows, and all options."""
    import typer.main

    from precede.cli import VERBS, app_of
    from precede.cli.start.explanations import TABLE
    from precede.cli.start.new import KINDS
    from precede.protocols import registry

    names: dict[str, Iterable[str]] = {"new": KINDS, "explain": TABLE, "protocols": registry.names()}
    words = {}
    for verb in VERBS:
        root = typer.main.get_command(app_of(verb))
        below = getattr(root, "commands", {})
        options = [
            name
            for command in (root, *below.values())
            for option in command.params
            for name in (*option.opts, *option.secondary_opts)
            if name.startswith("--")
        ]
        words[verb] = [*below, *names.get(verb, ()), *dict.fromkeys([*options, "--help"])]
    return words


def _fish(words: dict[str, list[str]]) -> list[str]:
    from precede.cli import VERBS

    lines = []
    for verb, options in words.items():
        summary = VERBS[verb].summary.replace("'", "\\'")
        lines.append(f"complete -c precede -n __fish_use_subcommand -f -a {verb} -d '{summary}'")
        for word in options:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c precede -n '__fish_seen_subcommand_from {verb}' {kind}")
    return lines
