"""`python -m releasing build | check | try`: see `docs/guides/releasing.md`."""

import argparse
import sys
import tempfile
from pathlib import Path

from releasing.build import Built, build, compiler_version, differences, last_commit
from releasing.environments import ROOT
from releasing.interpreters import VERSIONS, find_interpreters


def main() -> int:
    """Run one step of a release."""
    parser = argparse.ArgumentParser(prog="python -m releasing", description=__doc__)
    parser.add_argument("step", choices=["build", "check", "try"])
    parser.add_argument(
        "--dist", type=Path, default=ROOT / "dist", help="folder of the release (default: dist)"
    )
    parser.add_argument("--only", metavar="3.12,3.13", help="versions of Python (default: all that are here)")
    parser.add_argument("--twice", action="store_true", help="build: a second time, and compare the bytes")
    parser.add_argument("--write", action="store_true", help="try: put the table into docs/guides/install.md")
    arguments = parser.parse_args()
    interpreters = find_interpreters()
    versions = arguments.only.split(",") if arguments.only else list(VERSIONS)
    chosen = {version: path for version, path in interpreters.items() if version in versions}
    for version in versions:
        print(f"CPython {version}: {chosen.get(version, 'not found here, so not built or tried')}", flush=True)
    if not chosen:
        raise SystemExit("none of these versions of CPython is here")
    if arguments.step == "build":
        return build_release(arguments.dist, chosen, arguments.twice)
    if arguments.step == "check":
        from releasing.index import check

        return check(arguments.dist, next(iter(chosen.values())))
    from releasing.trial import try_release

    return try_release(arguments.dist, chosen, arguments.write)


def build_release(dist: Path, interpreters: dict[str, Path], twice: bool) -> int:
    """Build everything, print the files, and with `twice` compare them with a second build."""
    print(compiler_version())
    for old in dist.glob("precede-*"):
        old.unlink()
    commit = last_commit()
    made = build(dist, interpreters, commit)
    (dist / "SHA256SUMS").write_text("".join(f"{each.digest}  {each.path.name}\n" for each in made))
    print("\n".join(_described(made)))
    if not twice:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        first.mkdir()
        for each in made:
            (first / each.path.name).write_bytes(each.path.read_bytes())
        build(second, interpreters, commit)
        differing = differences(first, second)
    print("\n".join(differing) or f"A second build has the same bytes in all {len(made)} files.")
    return 1 if differing else 0


def _described(made: list[Built]) -> list[str]:
    rows = [
        f"| {each.path.name} | {each.path.stat().st_size / 1e6:.1f} | {each.seconds:.0f} |" for each in made
    ]
    return ["", "| file | MB | built in s |", "| --- | --- | --- |", *rows, ""]


if __name__ == "__main__":
    sys.exit(main())
