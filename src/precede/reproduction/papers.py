"""Finds the papers' claims, experiments and readings: in a folder, in the package, or in its source."""

from pathlib import Path

from precede.core.errors import BadInput


def find_papers(chosen: Path | None = None) -> Path:
    """Return the folder of the papers: the chosen one, `papers` in the working directory, or the package's."""
    if chosen is not None:
        if not chosen.is_dir():
            raise BadInput(f"--papers {chosen}: no such folder")
        return chosen
    package = Path(__file__).parents[1]
    for folder in (Path("papers"), package / "papers", package.parents[1] / "papers"):
        if any(folder.glob("*/claims.toml")):
            return folder
    raise BadInput("no papers here and none in the package (name their folder with --papers)")
