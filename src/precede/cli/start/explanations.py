"""The table of stable codes: what an error, an undecided verdict or a warning means, and what to do.

Bad input gets the code of the module that raised it: an error of a log comes from the readers of logs, whatever
the file is called. So no error has to carry a code. A test compares the table with the code. Codes are never
reused.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from precede.core.errors import BadInput


class Explanation(NamedTuple):
    """One code: its title, where it comes from, why it happens, and what to do.

    `origin` is a list of modules for bad input, and a pattern for texts of verdicts and codes of warnings.
    """

    code: str
    title: str
    origin: str
    why: str
    remedy: str


COMMAND_LINE: Final = "E001"
MISSING: Final = "E002"
PATH: Final = "E003"
FAILED: Final = "E009"

GENERAL: Final = (
    Explanation(
        COMMAND_LINE,
        "a mistake in the command line",
        "cli",
        "The command has a word or a value that it does not know, or two that contradict each other.",
        "`precede --help` lists the verbs; `precede VERB --help` shows the options of one, with an example.",
    ),
    Explanation(
        MISSING,
        "something that this command needs is not there",
        "",
        "An extra is not installed, Spark did not start, Java is missing, or a storage cannot be reached.",
        "Run the line in the message, if it has one. `precede doctor` prints the line for every "
        "extra and checks Java; "
        "PRECEDE_SPARK_LOG=- shows the log of Spark.",
    ),
    Explanation(
        PATH,
        "a path cannot be used",
        "files",
        "A file does not exist, is not readable for you, is no regular file, or unpacks to an "
        "unreasonable size.",
        "Paths on the command line are relative to the current folder, paths in a scenario to the "
        "scenario's folder.",
    ),
    Explanation(
        FAILED,
        "a failure of Precede or of the machine",
        "",
        "Something happened that Precede does not expect: a defect, a full disk, too little memory.",
        "PRECEDE_TRACEBACK=1 shows where. `precede doctor` checks the machine. Otherwise report both.",
    ),
)

FAMILIES: Final = (
    Explanation(
        "E011",
        "a log cannot be read",
        "witness measures pipeline.judging pipeline.following",
        "A log is CSV with a header, JSON lines or Parquet. Each row has node, step, kind and a message.",
        "Correct the row that the message names. Other names of columns: --columns "
        "node=host,step=seq. Other words "
        "for broadcast and delivered: --kinds.",
    ),
    Explanation(
        "E012",
        "a trace cannot be read or made",
        "traces files.lines files.rejects pipeline.mobility",
        "The file has another format than --as says, a row of it is wrong, or a generator got "
        "impossible numbers.",
        "docs/reference/formats.md says what each format looks like and which options it has.",
    ),
    Explanation(
        "E013",
        "a scenario or a sweep is wrong",
        "experiments sim.randomness pipeline.sweeps",
        "A key of a TOML file or after --set does not exist, has no effect, or has a value outside its range.",
        "docs/reference/scenario.md lists every key. `precede new scenario` writes a scenario that works.",
    ),
    Explanation(
        "E014",
        "a duration or an instant is wrong",
        "core",
        "A duration is a number with a unit.",
        "Write 250ms, 20s, 20min or 2h.",
    ),
    Explanation(
        "E015",
        "a protocol, dissemination or option does not exist, or does not fit",
        "protocols",
        "Names are written exactly. Some options need others, and some protocols run in some worlds only.",
        "`precede protocols` lists protocols, `precede protocols NAME` the options of one with their bounds.",
    ),
    Explanation(
        "E016",
        "a key, an identity or a roster is wrong",
        "runtime.links runtime.rosters runtime.names runtime.evidence runtime.guests cli.field.keys",
        "A key file must be private and hold keys as hexadecimal digits; a roster must be signed and new.",
        "`precede keys make FILE` makes one, `chmod 600 FILE` makes it private. docs/security.md "
        "explains rosters.",
    ),
    Explanation(
        "E017",
        "a member cannot start as it is set up",
        "api node_plans runtime.history runtime.membership runtime.observe runtime.rows runtime.settings "
        "runtime.topics runtime.transports runtime.programs cli.field",
        "An address is in use or not of this machine, a folder cannot be written, or the order "
        "lacks what it needs.",
        "End the other process or choose another port. delta needs a lifetime; multicast and total "
        "need members.",
    ),
    Explanation(
        "E018",
        "a store cannot be used",
        "runtime.store runtime.store_lock runtime.store_upgrade",
        "Another process uses it, it belongs to another member or group, or the file is no store.",
        "Each member has a store of its own. Never copy one.",
    ),
    Explanation(
        "E019",
        "something is not in the lake",
        "lake cli.data.lake",
        "A trace, its contacts or a run was not made, was made under another name, or its file is damaged.",
        "`precede ingest` makes traces, `precede contacts` contacts, `precede sweep` runs. `precede "
        "lake check` finds "
        "damage. --lake names the lake.",
    ),
    Explanation(
        "E020",
        "Spark cannot be used as asked",
        "pipeline.sessions",
        "The master or a setting is wrong, or this process already has a session.",
        "Leave out --master to run on this machine. Settings are written --conf spark.some.key=value.",
    ),
    Explanation(
        "E021",
        "a paper, an exhibit or a claim does not exist, or its file is wrong",
        "reproduction cli.evidence.reproduce",
        "Papers have keys such as prs1997; their claims and experiments are TOML files.",
        "`precede reproduce --help` names the papers; docs/guides/reproduce.md explains the files.",
    ),
    Explanation(
        "E022",
        "the log of a deployment cannot be audited",
        "audit cli.evidence.audit",
        "Each row is an event of one node: node, kind (created, received or sent), message, and at in seconds.",
        "Correct the row that the message names. docs/guides/audit.md describes the columns and the bounds.",
    ),
    Explanation(
        "E023",
        "a world cannot be played, or a saved one cannot be read",
        "play cli.runs.play",
        "An input names a node that the world does not have, a folder is no saved world, or a port is in use.",
        "docs/guides/play.md describes what is saved. Leave out --port to use any port that is free.",
    ),
)

REASONS: Final = (
    Explanation(
        "E040",
        "unknown: rows of a node are missing",
        r"rows are missing \(or steps",
        "The steps of a node count its rows. A number is skipped, so an event is not in the log.",
        "Gather the whole log. If steps grow without counting rows, say so: --steps ordered.",
    ),
    Explanation(
        "E041",
        "unknown: the log is truncated",
        r"truncated",
        "The file ends within a row or within compressed data. The events after it are unknown.",
        "Copy the file again when its writer has closed it. --follow verifies a log that still grows.",
    ),
    Explanation(
        "E042",
        "unknown: no deliveries at all",
        r"no deliveries at all",
        "No row is a delivery: nothing was delivered, or the log has another word for it.",
        "Name the log's own words: --kinds broadcast=send,delivered=deliver.",
    ),
    Explanation(
        "E043",
        "unknown: the log of a member was not gathered",
        r"log gathered\?",
        "A node has no rows of its own, but it is a known member or its messages were delivered.",
        "Add its log. If it is no member, name the members: --members a,b,c.",
    ),
    Explanation(
        "E044",
        "unknown: the order needs something that is not in the log",
        r"needs the column|needs deadlines|delivering node's clock|has no clock_us|broadcast rows",
        "Causal orders need broadcast rows, multicast needs destinations, delta needs deadline_us "
        "and clock_us.",
        "Log them, or ask for an order that can be decided: --order fifo or --order total.",
    ),
    Explanation(
        "E045",
        "unknown: lines of the log were rejected",
        r"lines were rejected",
        "A line of a log that was read with --as is not a row of its format, so an event may be missing.",
        "The counts say how many and why. Correct them, or remove the lines that are no events.",
    ),
    Explanation(
        "E046",
        "unknown: a follower cannot judge some rows",
        r"cannot be judged|never came|occurs twice, with|taken to begin|broadcasts (number|a message whose)",
        "With --follow: rows contradict each other, rows waited for others that did not come, or a message was "
        "delivered after it had been forgotten.",
        "Name all nodes (--members) or keep messages longer (--retain). `precede verify` judges the whole log.",
    ),
)

WARNINGS: Final = (
    Explanation(
        "E060",
        "nobody is heard",
        r"nobody_heard",
        "No other member has answered: wrong addresses, a firewall, or nobody is there yet.",
        "Compare the addresses of both members (--bind, --peer). UDP must be allowed between them.",
    ),
    Explanation(
        "E061",
        "somebody uses another key",
        r"other_key",
        "Frames arrive that the group's key does not open.",
        "Give every member the same key file; after a rotation, the new one.",
    ),
    Explanation(
        "E062",
        "the clocks of members differ",
        r"other_clock",
        "Each member judges lifetimes by its own clock.",
        "Set the clocks, or use an order without lifetimes: causal.",
    ),
    Explanation(
        "E063",
        "a member has other settings or another version",
        r"other_\w+",
        "The members of a group need the same order, dissemination, lifetime and wire version, and each topic "
        "needs the same order everywhere.",
        "The warning names both values: change one of the members.",
    ),
    Explanation(
        "E064",
        "two members have one name",
        r"same_name|twin",
        "Two processes use one name, or copies of one store.",
        "Give each member a name and a store of its own.",
    ),
    Explanation(
        "E065",
        "a store is older than its member",
        r"restored_store|rolled_back",
        "The store was restored from a backup, or a copy of it was used.",
        "Never run a copy of a store. The member goes on as a new incarnation if its order has them; "
        "else begin with a new store.",
    ),
    Explanation(
        "E066",
        "a member signed two different messages with one number",
        r"equivocation|evidence_unwritten",
        "Its store was copied, or it lies. The evidence is kept beside the event log, if it can be "
        "written there.",
        "Ask the member. docs/security.md explains evidence, and how to remove a member from the roster.",
    ),
    Explanation(
        "E067",
        "a message shows its author as a number",
        r"unknown_author",
        "Members learn names from introductions, which neighbours pass on. This one did not come in time.",
        "It shows the name when it comes. Name the members in `members=` of `join` if they rarely meet.",
    ),
    Explanation(
        "E068",
        "a store is larger than its quota",
        r"store_over_quota",
        "`Retention(disk=...)` evicts history only. What the protocol itself needs, and messages that the "
        "application has not taken, take more than the quota.",
        "Take the delivered messages, or allow the store more bytes (docs/guides/history.md).",
    ),
    Explanation(
        "E069",
        "an application takes messages too slowly",
        r"slow_reader",
        "Without a store, delivered messages wait in memory for the application, up to `backlog` bytes. There "
        "were more, and the loop raises precede.Missed where some were dropped.",
        "Give the member a store: then nothing is dropped. Or set a larger `backlog=` in `join` "
        "(docs/guides/topics-and-presence.md).",
    ),
    Explanation(
        "E070",
        "no member gives a snapshot",
        r"no_snapshot",
        "Messages are missing, and the neighbours have no `on_snapshot`, lag behind themselves, or are not in "
        "`snapshot_from`.",
        "Set `on_snapshot` and `on_restore` at every member (docs/guides/history.md).",
    ),
)

TABLE: Final = {entry.code: entry for entry in (*GENERAL, *FAMILIES, *REASONS, *WARNINGS)}
_BY_MODULE: Final = {module: entry.code for entry in (*GENERAL, *FAMILIES) for module in entry.origin.split()}


def code_of_module(module: str) -> str | None:
    """Return the code of bad input that a module raises: that of the longest listed name it begins with."""
    parts = module.removeprefix("precede.").split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_BY_MODULE[prefix] for prefix in prefixes if prefix in _BY_MODULE), None)


def code_of_error(error: BadInput) -> str | None:
    """Return the code of an error, by the module that raised it or its innermost cause."""
    inner: BaseException = error
    while isinstance(cause := inner.__cause__ or inner.__context__, BadInput):
        inner = cause
    place = inner.__traceback__
    if place is None:
        return None
    while place.tb_next is not None:
        place = place.tb_next
    return code_of_module(str(place.tb_frame.f_globals.get("__name__", "")))


def code_of_reason(text: str) -> str | None:
    """Return the code of a reason why a verdict is unknown; None if it is none."""
    return next((entry.code for entry in REASONS if re.search(entry.origin, text)), None)


def code_of_warning(code: str) -> str | None:
    """Return our code for the code of a `GroupWarning`; None if it is none."""
    return next((entry.code for entry in WARNINGS if re.fullmatch(entry.origin, code)), None)
