"""A type checker sees the public interface: it accepts a right program and reports a user's mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import precede
from precede.core.instants import MINUTE
from precede.protocols.guidec2021.options import CausalBarrierOptions, DeltaCausalOptions

ROOT = Path(__file__).parents[2]

RIGHT = """
import asyncio
from datetime import timedelta

import precede


async def follow(group: precede.Group) -> None:
    async for message in group:
        print(message.source, message.number, message.payload.decode())


async def main() -> None:
    order: precede.Order = "delta"
    try:
        async with precede.join(
            "picnic", "ana", key=bytes(32), order=order, lifetime=timedelta(minutes=20), options={"cache": 1000}
        ) as group:
            await group.broadcast(b"who brings bread?", lifetime="5min")
            await follow(group)
    except precede.NotYet:
        print("later")
    except (precede.BadInput, precede.Refused, precede.StoreFailed, precede.Unavailable) as error:
        print(error)


def check() -> str:
    run: precede.Simulation = precede.simulate("small-office", protocol="fifo", seed=7, settings={"loss": 0.3})
    verdict: precede.Verdict = run.verify("causal")
    same = precede.verify(run.events, "causal", duplicates="forbid")
    first: precede.Violation | None = same.first
    return verdict.verdict if first is None else first.story


asyncio.run(main())
"""

MISTAKES = {
    "a misspelt keyword": (
        'precede.simulate("small-office", protocl="fifo")',
        'Unexpected keyword argument "protocl" for "simulate"',
    ),
    "a misspelt keyword of join": (
        'precede.join("picnic", "ana", key=None, ordr="causal")',
        'Unexpected keyword argument "ordr" for "join"',
    ),
    "a protocol option as a keyword": (
        'precede.join("picnic", "ana", key=None, cache=1000)',
        'Unexpected keyword argument "cache" for "join"',
    ),
    "a wrong order name": (
        'precede.join("picnic", "ana", key=None, order="casual")',
        'Argument "order" to "join" has incompatible type "Literal[\'casual\']"',
    ),
    "a wrong order name for verify": (
        'precede.verify("log.csv", "casual")',
        'Argument 2 to "verify" has incompatible type "Literal[\'casual\']"',
    ),
    "a missing await": (
        'async def say(group: precede.Group) -> None:\n    group.broadcast(b"hello")',
        'Value of type "Coroutine[Any, Any, None]" must be used',
    ),
    "a text as payload": (
        'async def say(group: precede.Group) -> None:\n    await group.broadcast("hello")',
        'Argument 1 to "broadcast" of "Group" has incompatible type "str"',
    ),
    "a name that does not exist": ("precede.simulation", 'has no attribute "simulation"'),
}


def checked(folder: Path, *programs: str) -> list[str]:
    """What mypy --strict reports about each program."""
    for number, program in enumerate(programs):
        (folder / f"program{number}.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "."],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    reports = [""] * len(programs)
    for line in done.stdout.splitlines():
        for number in range(len(programs)):
            if line.startswith(f"program{number}.py:"):
                reports[number] += line + "\n"
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return reports


def test_a_right_program_passes_and_each_mistake_is_reported(tmp_path: Path) -> None:
    programs = [f"import precede\n\n{code}\n" for code, _ in MISTAKES.values()]
    right, *wrong = checked(tmp_path, RIGHT, *programs)
    assert right == ""
    for (mistake, (_, expected)), report in zip(MISTAKES.items(), wrong, strict=True):
        assert expected in report, (mistake, report)


def test_the_package_has_the_marker_of_typed_packages() -> None:
    assert (ROOT / "src" / "precede" / "py.typed").is_file()
    assert '"py.typed"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_public_name_can_be_imported_and_listed() -> None:
    for name in precede.__all__:
        assert getattr(precede, name) is not None
        assert name in dir(precede)
    with pytest.raises(AttributeError, match="no attribute 'joyn'"):
        precede.joyn  # type: ignore[attr-defined]  # noqa: B018


def test_importing_precede_loads_no_other_package() -> None:
    program = (
        "import sys, precede; print(sorted(m for m in sys.modules if m.startswith(('precede.', 'msgspec'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_missing_library_is_answered_with_the_line_that_installs_it() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\nimport precede\n"
        "try:\n    precede.join\nexcept precede.Unavailable as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "precede.join needs cryptography, which is not installed; "
        "install it with: pip install 'precede[runtime]'\n"
    )


def test_options_are_a_mapping_or_the_protocols_own_struct() -> None:
    struct = DeltaCausalOptions(lifetime=5 * MINUTE)
    small = {"until": "2s", "crashes": []}
    for options in ({"lifetime": "5min"}, struct):
        run = precede.simulate("small-office", "delta_causal", seed=7, options=options, settings=small)
        broadcast = run.frame().query("kind == 'broadcast'")
        assert set(broadcast["deadline_us"] - broadcast["clock_us"]) == {5 * MINUTE}
    with pytest.raises(precede.BadInput, match="options: fifo has no option 'loss'"):
        precede.simulate("small-office", "fifo", options={"loss": 0.3})
    assert precede.join("g", "ana", key=None, options=CausalBarrierOptions(prune=False)).name == "ana"
    with pytest.raises(precede.BadInput, match="'causal_barrier' has no option 'lifetime'"):
        precede.join("g", "ana", key=None, options=struct)
