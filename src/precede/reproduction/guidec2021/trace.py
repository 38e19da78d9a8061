"""Tables IV to VI of guidec2021 on a trace that its user has: `precede reproduce guidec2021 --with NAME=FILE`.

The paper used `ostermalm_001_1` of CRAWDAD's data set kth/walkers, which we may not redistribute. Its contacts
take the place of our made-up districts; days then differ in their messages and transfers alone.
"""

import re
import shutil
from pathlib import Path
from typing import Final

from precede.core.errors import BadInput
from precede.traces.pedestrians import RANGE_M
from precede.traces.reading import load
from precede.traces.writers import write_contacts, write_presence

TRACES: Final = ("ostermalm_001_1",)
_SCENARIO: Final = """[world]
kind = "contacts"
contacts = "contacts.csv"
nodes = "nodes.csv"

[workload]
every = "1min"
first = "20s"
size = 1000

[run]
protocol = "delta_causal"
options = { lifetime = "20min" }
"""
_TABLE: Final = re.compile(r"(?m)^(?=\[)")


def read_trace_option(written: str) -> tuple[str, Path]:
    """Return the name and file of `NAME=FILE`. Raises BadInput for another form, name, or a missing file."""
    name, equals, file = written.partition("=")
    if not equals or name not in TRACES:
        raise BadInput(f"--with {written}: expected {TRACES[0]}=FILE")
    if not Path(file).is_file():
        raise BadInput(f"--with {written}: no such file")
    return name, Path(file)


def folder_with_trace(paper: Path, name: str, file: Path, out: Path) -> Path:
    """Write the claims and experiments about pedestrians into a folder, with the trace; returns the folder."""
    loaded = load(file, "walkers")
    for reject in loaded.rejects:
        raise BadInput(f"{file}:{reject.line}: {reject.reason}")
    contacts = loaded.mobility().contacts(RANGE_M)
    out.mkdir(parents=True, exist_ok=True)
    scenario = out.resolve() / f"{name}.toml"
    scenario.write_text(_SCENARIO, encoding="utf-8")
    write_contacts(contacts, out / "contacts.csv")
    write_presence(contacts, out / "nodes.csv")
    claims = _chosen(paper / "claims.toml", 'experiment = "pedestrians"', "[[claim]]")
    (out / "claims.toml").write_text(claims, encoding="utf-8")
    experiments = _chosen(paper / "experiments.toml", 'scenario = "pedestrians"', "[experiment.")
    changed = experiments.replace(
        'scenario = "pedestrians"', f'scenario = "{scenario.as_posix()}"\nlayouts = ["{name}"]'
    )
    (out / "experiments.toml").write_text(changed, encoding="utf-8")
    shutil.copyfile(paper / "figures.toml", out / "figures.toml")
    return out


def _chosen(path: Path, needed: str, begins: str) -> str:
    """Return a TOML file without the tables that begin so and lack the needed line."""
    tables = _TABLE.split(path.read_text(encoding="utf-8"))
    return "".join(table for table in tables if not table.startswith(begins) or needed in table)
