"""Runs The ONE (github.com/akeranen/the-one), built in a folder of its own, on a world of files.

Hosts do not move: contacts and messages are external events. Every message is addressed to one host without
contacts, so that each of the others carries it, as in a broadcast. The ONE begins one transfer of a node at
each update, so it relays fewer messages in a short contact than Precede, the fewer the rarer updates are. They
come ten times a second, as in its own default settings, and at every external event.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from precede.core.natural_order import natural

SETTINGS: Final = """
Scenario.name = run
Scenario.simulateConnections = false
Scenario.updateInterval = 0.1
Scenario.endTime = {end}
Scenario.nrofHostGroups = 1
link.type = SimpleBroadcastInterface
link.transmitSpeed = 2000M
link.transmitRange = 1
Group.groupID = h
Group.movementModel = StationaryMovement
Group.nodeLocation = 0, 0
Group.router = EpidemicRouter
Group.bufferSize = 2000M
Group.nrofInterfaces = 1
Group.interface1 = link
Group.msgTtl = {minutes}
Group.nrofHosts = {hosts}
MovementModel.rngSeed = 1
MovementModel.worldSize = 10, 10
Events.nrof = 2
Events1.class = ExternalEventsQueue
Events1.filePath = {folder}/one-contacts.txt
Events2.class = ExternalEventsQueue
Events2.filePath = {folder}/one-messages.txt
Report.nrofReports = 1
Report.warmup = 0
Report.reportDir = {folder}/one-reports
Report.report1 = MessageStatsReport
Optimization.randomizeUpdateOrder = false
"""


class OneRun(NamedTuple):
    """What a run of The ONE took, and how many messages it relayed."""

    cpu_s: float
    relayed: int


def write_the_one(folder: Path) -> None:
    """Write the contacts and messages of a folder (`contacts.csv`, `nodes.csv`, `messages.csv`) for The ONE."""
    number = _numbers(folder)
    events: list[tuple[float, int, str]] = []
    for row in _rows(folder / "contacts.csv"):
        pair = f"{number[row['a']]} {number[row['b']]}"
        events += [(float(row["start"]), 1, f"{row['start']} CONN {pair} up")]
        events += [(float(row["end"]), 0, f"{row['end']} CONN {pair} down")]
    lines = [line for _, _, line in sorted(events)]
    (folder / "one-contacts.txt").write_text("\n".join(lines) + "\n")
    messages = [
        f"{row['time']} C {row['id']} {number[row['src']]} {len(number)} {row['size']}"
        for row in _rows(folder / "messages.csv")
    ]
    (folder / "one-messages.txt").write_text("\n".join(messages) + "\n")


def run_the_one(the_one: Path, folder: Path, minutes: int) -> OneRun:
    """Run it on the files that `write_the_one` has written, with one lifetime for all messages."""
    end = max(float(row["leave"]) for row in _rows(folder / "nodes.csv"))
    settings = folder / f"one-{minutes}.txt"
    hosts = len(_numbers(folder)) + 1
    settings.write_text(SETTINGS.format(end=int(end), minutes=minutes, hosts=hosts, folder=folder))
    libraries = [str(the_one / part) for part in ("target", "lib/ECLA.jar", "lib/DTNConsoleConnection.jar")]
    command = ["java", "-Xmx4G", "-XX:+UseSerialGC", "-cp", ":".join(libraries)]
    command += ["core.DTNSim", "-b", "1", str(settings)]
    process = subprocess.Popen(command, cwd=the_one, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    report = (folder / "one-reports" / "run_MessageStatsReport.txt").read_text()
    relayed = re.search(r"^relayed: (\d+)$", report, re.MULTILINE)
    if process.returncode or relayed is None:
        raise SystemExit(f"The ONE failed with {process.returncode}: {report[:200]}")
    return OneRun(usage.ru_utime + usage.ru_stime, int(relayed[1]))


def _numbers(folder: Path) -> dict[str, int]:
    names = sorted({row["node"] for row in _rows(folder / "nodes.csv")}, key=natural)
    return {name: number for number, name in enumerate(names)}


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))
