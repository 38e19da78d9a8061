"""The command line: one module per verb. This module finds the verb, runs it and returns its exit code.

The verbs are in `runs`, `data`, `evidence`, `field` and `start`, by what they work on; `progress` shows
progress, `terminal` has colours and marks the place of a mistake. `parameters` has the declarations of
parameters, `plain_words` reads most command lines, `with_typer` shows help and explains mistakes in the others.

May import: core, protocols, eventlog, traces, sim, runtime, witness, measures, experiments, reproduction,
    pipeline, lake, report, api, audit, play

To add a verb, add one line to `VERBS` and a module in the sub-package it belongs to, with either

* `def command(...) -> int | None`: its parameters are declared by `parameters`; its docstring is the help and
  must show an example (after a line with a single backslash-b, so that it is not rewrapped); or
* `app`, a `parameters.Group`, when the verb has verbs of its own (`precede keys make`).

A module is imported only when its verb is called. Import Spark, Arrow and the like inside functions, so that
`--help` is quick. What a verb does, and what the shell sees:

* return None or 0: success, exit 0          * return 1: a finding (a violation, a claim missed), exit 1
* raise BadInput: one line on stderr, exit 2   * raise Unavailable, or miss a module: exit 3, with a line
* anything else: a bug or a broken machine, exit 3 with one line (PRECEDE_TRACEBACK=1 shows the rest)
"""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from precede.cli.plain_words import read_plain_words
from precede.cli.start.explanations import COMMAND_LINE, FAILED, MISSING, PATH, code_of_error, code_of_module
from precede.cli.terminal import excerpt, painted
from precede.core.errors import BadInput, Unavailable, missing_library


class Verb(NamedTuple):
    """A verb: the module below `precede.cli` that has its `command` or `app`, and its line in the overview."""

    module: str
    summary: str


VERBS: Final[dict[str, Verb]] = {
    "demo": Verb("runs.demo", "the whole pipeline on a bundled bus day, to a report you can open"),
    "sweep": Verb("data.sweep", "many runs, on Spark: a grid of scenarios, protocols, options and seeds"),
    "ingest": Verb(
        "data.ingest", "real traces into the lake: GTFS, GPS, positions, ns-2, The ONE, SocioPatterns, ..."
    ),
    "contacts": Verb("data.contacts", "who is within reach of whom, and when: exact contacts of a trace"),
    "simulate": Verb("runs.simulate", "one run of a scenario, in this process"),
    "play": Verb("runs.play", "a world on a page, to touch: cut links, crash nodes, with order and without"),
    "verify": Verb(
        "evidence.verify",
        "does this log keep its order? An exact verdict, and violations explained",
    ),
    "audit": Verb("evidence.audit", "which order did a deployment keep? Late copies, at least and at most"),
    "measure": Verb("evidence.measure", "ratios, latencies, copies, buffers, bytes and energy of a run"),
    "reproduce": Verb("evidence.reproduce", "a paper's published numbers beside ours, every run verified"),
    "bundle": Verb(
        "runs.bundle",
        "a run or a reproduction as a folder: scenario, seeds, versions, verdict, how to run it again",
    ),
    "lake": Verb("data.lake", "check: is every file what its job wrote? compact: merge small files"),
    "spark": Verb("data.pack", "pack: an archive from which the executors of a cluster run compiled code"),
    "report": Verb("data.report", "the lake as a site: diagrams, maps, tables, opened from a disk"),
    "export": Verb("data.export", "a sweep as figures and tables for a paper; a trace as a temporal network"),
    "swarm": Verb("runs.swarm", "seeded worlds that break, heal, and must hold"),
    "repro": Verb("runs.repro", "the smallest world in which an ordering rule misorders"),
    "conform": Verb("runs.conform", "your own protocol: scenarios, swarm, rivals, one table"),
    "node": Verb(
        "field.node", "a member of a group over sockets: lines in are broadcast, lines out are delivered"
    ),
    "top": Verb("field.top", "a running group, live: who hears whom, what waits and for what, violations"),
    "host": Verb("field.host", "a mobile host over sockets: in the cell of the station it hears"),
    "station": Verb("field.station", "a station over sockets: a radio cell, and wires to its neighbours"),
    "emulate": Verb("field.emulate", "a scenario lived through by real nodes over sockets, compressed in time"),
    "keys": Verb("field.keys", "make, show, export and rotate a group's keys"),
    "protocols": Verb("runs.protocols", "what is there, with paper, order and network"),
    "new": Verb("start.new", "a small scenario, protocol, routing, app or trace with its test, to begin with"),
    "explain": Verb("start.explain", "what the code of an error, a verdict or a warning means, and what to do"),
    "completion": Verb("start.completion", "a script that completes verbs and options in bash, zsh or fish"),
    "doctor": Verb("start.doctor", "what is installed, missing or slow here, and the line that mends it"),
}

OK: Final = 0
BAD_INPUT: Final = 2
FAILURE: Final = 3
_LONGEST: Final = 2000
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141
_PLACES: Final = (
    *(errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM),
    *(errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
)
"""Errors of the operating system about a path that the user named, not about the machine."""
_UNREADABLE: Final = re.compile(r"Could not open Parquet input source '(.*?)':")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `precede` command and return its exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else numpy starts a thread per core, for nothing here
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")  # clearing huge pages took 0.6 s of a run of 7 s
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # mimalloc holds a tenth more memory
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_the_pipe()
    if arguments is None:
        gc.freeze()  # the process ends: its last collection would look for cycles in the whole world
    return code


def app_of(verb: str) -> Any:
    """Return the typer application of a verb."""
    from precede.cli.with_typer import typer_app

    return typer_app(_declared(verb))


def _declared(verb: str) -> Any:
    """Import the module of a verb; return its `command` or its `app`."""
    module = import_module(f"precede.cli.{VERBS[verb].module}")
    return module.app if hasattr(module, "app") else module.command


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return OK if words else BAD_INPUT
    if words[0] == "--version":
        from precede import __version__

        print(f"precede {__version__}")
        return OK
    verb = words[0]
    if verb not in VERBS:
        return _complain("precede", _unknown(verb), BAD_INPUT, COMMAND_LINE)
    try:
        return _call(verb, words[1:])
    except BrokenPipeError:
        raise
    except BadInput as error:
        return _complain(f"precede {verb}", str(error), BAD_INPUT, code_of_error(error))
    except Unavailable as error:
        return _complain(f"precede {verb}", str(error), FAILURE, MISSING)
    except ModuleNotFoundError as error:
        line = missing_library(error)
        if line is None:
            return _unexpected(verb, error)
        return _complain(f"precede {verb}", line, FAILURE, MISSING)
    except KeyboardInterrupt:
        return _complain(f"precede {verb}", "interrupted", _INTERRUPTED)
    except OSError as error:
        if error.errno not in _PLACES or not error.filename:
            return _unexpected(verb, error)
        _show_traceback(error)
        cause = "is a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
        return _complain(f"precede {verb}", f"{error.filename}: {cause}", BAD_INPUT, PATH)
    except Exception as error:
        broken = _UNREADABLE.search(str(error)) if type(error).__name__ == "ArrowInvalid" else None
        if broken is None:
            return _unexpected(verb, error)
        _show_traceback(error)
        cause = f"{broken[1]}: not a readable Parquet file"
        return _complain(f"precede {verb}", cause, BAD_INPUT, code_of_module("witness"))


def _call(verb: str, arguments: list[str]) -> int:
    """Run one verb; returns the verb's exit code."""
    plain = read_plain_words(_declared(verb), arguments)
    if plain is not None:
        function, given = plain
        code = function(**given)
        return code if isinstance(code, int) else OK
    app = app_of(verb)
    try:
        code = app(args=arguments, prog_name=f"precede {verb}", standalone_mode=False)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        code = stop.code
    except Exception as error:
        return _usage(verb, error)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else OK


def _usage(verb: str, error: Exception) -> int:
    """Report a mistake in the command line in one line and return the exit code; raise any other error."""
    if type(error).__name__ == "Abort":
        raise KeyboardInterrupt from error
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", error))
        return BAD_INPUT
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        cause = " ".join(error.format_message().split()).rstrip(".")
        line = f"{cause} (precede {verb} --help shows an example)"
        return _complain(f"precede {verb}", line, BAD_INPUT, COMMAND_LINE)
    raise error


def _overview() -> str:
    width = max(map(len, VERBS), default=0)
    verbs = "\n".join(f"  {name:<{width}}  {verb.summary}" for name, verb in VERBS.items())
    return (
        "Precede: ordered broadcast for networks that move.\n\n"
        f"Usage: precede VERB [ARGUMENTS]\n\n{verbs}\n\n"
        "precede VERB --help    what it takes, with an example\n"
        "precede explain CODE   what the code at the end of an error means\n"
        "precede --version      which version this is\n\n"
        "Exit codes: 0 success, 1 a finding (a violation, an unknown verdict), 2 bad input, 3 a failure."
    )


def _unknown(verb: str) -> str:
    from difflib import get_close_matches

    if verb.startswith("-"):
        return f"no option {verb!r} here; a verb comes first ({', '.join(VERBS)})"
    near = get_close_matches(verb, VERBS, n=1)
    return f"no verb {verb!r} " + (f"(did you mean {near[0]!r}?)" if near else f"(known: {', '.join(VERBS)})")


def _complain(program: str, line: str, exit_code: int, code: str | None = None) -> int:
    """Print an error as one line, with the code that `precede explain` explains, and return the exit code."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(line.split()))
    cut = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
    name = painted(f"{program}:", "red", sys.stderr)
    print(f"{name} {cut}{f' [{code}]' if code else ''}", file=sys.stderr)
    if sys.stderr.isatty():
        print("".join(f"{each}\n" for each in excerpt(line)), end="", file=sys.stderr)
    return exit_code


def _show_traceback(error: BaseException) -> None:
    if os.environ.get("PRECEDE_TRACEBACK"):
        import traceback

        traceback.print_exception(error)


def _unexpected(verb: str, error: BaseException) -> int:
    _show_traceback(error)
    cause = _raised_in_a_task(error) or f"{type(error).__name__}: {error}".rstrip(": ")
    return _complain(f"precede {verb}", f"failed: {cause} (PRECEDE_TRACEBACK=1 shows where)", FAILURE, FAILED)


def _raised_in_a_task(error: BaseException) -> str | None:
    """The last line of the traceback that Spark puts into the message of an error in a Python worker."""
    if type(error).__name__ != "PythonException":
        return None
    lines = [line for line in str(error).splitlines() if line and not line[0].isspace()]
    return f"{lines[-1]} (in a Spark task)" if len(lines) > 1 else None


def _leave_the_pipe() -> int:
    """Drop further output after its reader has gone, so that the interpreter does not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _BROKEN_PIPE
