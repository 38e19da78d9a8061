"""Saves a played world as a folder, and carries a saved one out again.

The folder has the scenario with every file it reads, the inputs, and for each side the event log that a run
writes. The logs are written by carrying the record out from the beginning, so what is saved is reproducible.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.sinks import EVENTS, ParquetSink
from precede.experiments.bundle import SCENARIO, digest, scenario_text, with_its_files
from precede.experiments.run import RUN_FILE, Run, write_run_file
from precede.experiments.scenario import read_scenario
from precede.play.record import RECORD_FILE, Record, check_record, read_record, write_record
from precede.play.session import SIDES, Session, SideName, order_of, side_of
from precede.witness.verdict import Verdict
from precede.witness.verify import verify

README: Final = "README.md"


class Saved(Struct, frozen=True):
    """A saved world: its folder, and the verdict of each side on the order that was chosen."""

    folder: Path
    verdicts: dict[SideName, Verdict]

    def plain(self) -> dict[str, Any]:
        """Return the verdicts as plain data, for a page."""
        return {
            name: {
                "order": verdict.order,
                "verdict": verdict.verdict,
                "violations": verdict.violations,
                "deliveries": verdict.deliveries_checked,
            }
            for name, verdict in self.verdicts.items()
        }


def save(session: Session, folder: Path) -> Saved:
    """Save a session as a folder. Raise RuntimeError if its record does not give the rows that were played."""
    folder.mkdir(parents=True, exist_ok=True)
    alone = with_its_files(session.run, folder)
    (folder / SCENARIO).write_text(scenario_text(alone), encoding="utf-8")
    write_record(folder / RECORD_FILE, session.record())
    run, record = load(folder)
    for name, side in session.sides.items():
        side.prepared.recorder.flush()
        played, written = side.tee.digest(), write_log(run, record, name, folder / name)
        if played != written:
            raise RuntimeError(f"{name}: the record does not give the rows that were played")
    (folder / README).write_text(_readme(session), encoding="utf-8")
    return Saved(folder, judged(run, folder))


def write_log(run: Run, record: Record, name: SideName, folder: Path) -> str:
    """Carry out a record on one side, write its event log, and return the digest of its rows."""
    sink = ParquetSink(folder)
    try:
        side = side_of(run, name, sink)
        side.carry_out(record)
        outcome = side.outcome()
    except BaseException:
        sink.abandon()
        raise
    (folder / RUN_FILE).unlink(missing_ok=True)
    sink.close()
    write_run_file(folder, side.run, outcome)
    return side.tee.digest()


def judged(run: Run, folder: Path) -> dict[SideName, Verdict]:
    """Judge both logs of a saved world by the order that was chosen."""
    return {
        name: verify(folder / name, order_of(run), duplicates="allow" if name == "unordered" else "forbid")
        for name in SIDES
    }


def load(folder: Path) -> tuple[Run, Record]:
    """Read a saved world. Raise `BadInput` if the folder is not one."""
    if not (folder / RECORD_FILE).is_file():
        raise BadInput(f"{folder}: not a saved world of `precede play` (it has no {RECORD_FILE})")
    run, record = read_scenario(str(folder / SCENARIO)), read_record(folder / RECORD_FILE)
    try:
        check_record(record, side_of(run, "ordered").names)
    except BadInput as error:
        raise BadInput(f"{folder / RECORD_FILE}: {error}") from None
    return run, record


def replay(folder: Path, out: Path) -> dict[SideName, bool | None]:
    """Carry a saved world out again into a folder; say for each side whether its log has the same bytes.

    None: the saved world has no log of this side to compare with.
    """
    run, record = load(folder)
    same: dict[SideName, bool | None] = {}
    for name in SIDES:
        write_log(run, record, name, out / name)
        before = folder / name / EVENTS
        same[name] = digest(before) == digest(out / name / EVENTS) if before.is_file() else None
    return same


def _readme(session: Session) -> str:
    return f"""# A world played with `precede play`

Protocol `{session.run.protocol}` (order: {session.order}), seed {session.run.seed},
{len(session.inputs)} inputs.

| file | what it is |
| --- | --- |
| `{SCENARIO}` | the world, the protocol and the seed |
| `{RECORD_FILE}` | what the player did, and when |
| `ordered/` | the event log with the protocol |
| `unordered/` | the event log of the same world without order |

    precede verify ordered
    precede verify unordered --order {session.order} --duplicates allow
    precede play --replay .
"""
