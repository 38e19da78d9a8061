"""Fuzzes every reader of files: it must return rows and rejects or raise BadInput, in bounded time.

`python -m tests.hostile.files --inputs 100000` gives each reader that many mutated files and prints, per
reader, how many were read and how many refused, the slowest one and the growth of memory. `--reader`,
`--seed` choose.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.audit.bounds import ORDERS
from precede.audit.mobiclique import read_mobiclique
from precede.audit.witness_orders import judge_every_order
from precede.core.errors import BadInput
from precede.experiments.scenario import read_scenario
from precede.runtime.links.keyring import read_keys
from precede.traces.contacts import read_contacts
from precede.traces.reading import Loaded, Options, load
from precede.witness.foreign.log import verify_foreign
from precede.witness.verify import verify
from tests.hostile.mutations import bent

MOST_SECONDS = 20.0
MOST_BYTES = 6 << 30


class Reader(Struct):
    """One reader: its name, valid files to mutate, words of its format, a function that reads and checks."""

    name: str
    seeds: Sequence[bytes]
    words: Sequence[bytes]
    read: Callable[[Path, Random], None]
    suffix: str = ""


class Outcome(Struct):
    """How many inputs of one reader were read, refused or failed, and what they cost."""

    reader: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    failures: int = 0
    slowest_s: float = 0.0
    cpu_s: float = 0.0
    grown_mib: float = 0.0


def fuzz(reader: Reader, inputs: int, seed: int, folder: Path) -> Outcome:
    """Read mutated files and count the outcomes. The input of a failure is kept and its traceback printed."""
    random, outcome = Random(f"{seed}/{reader.name}"), Outcome(reader.name)
    path = folder / f"bent{reader.suffix}"
    started, before = time.process_time(), 0
    for place in range(inputs):
        content = bent(reader.seeds, reader.words, random)
        path.write_bytes(content)
        path.chmod(0o600)
        begin = time.process_time()
        try:
            reader.read(path, random)
            outcome.read += 1
        except BadInput:
            outcome.refused += 1
        except Exception:
            outcome.failures += 1
            _keep(reader, content, traceback.format_exc(), outcome.failures)
        took = time.process_time() - begin
        if took > MOST_SECONDS:
            outcome.failures += 1
            _keep(reader, content, f"took {took:.1f} s\n", outcome.failures)
        outcome.slowest_s = max(outcome.slowest_s, round(took, 3))
        outcome.inputs += 1
        if place == min(1000, inputs // 10):
            before = _peak()
    outcome.cpu_s = round(time.process_time() - started, 1)
    outcome.grown_mib = round((_peak() - before) / 1024, 1)
    return outcome


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _keep(reader: Reader, content: bytes, story: str, count: int) -> None:
    if count <= 5:
        kept = Path(tempfile.gettempdir()) / f"precede-fuzz-{reader.name}-{count}{reader.suffix}"
        kept.write_bytes(content)
        print(f"{reader.name}: {kept}\n{story}", file=sys.stderr, flush=True)


def sound(loaded: Loaded) -> None:
    """Check that the counts add up, the values are finite and ordered in time, the rejects printable."""
    summary = loaded.summary
    assert summary.rows_read == summary.rows_kept + summary.rows_rejected
    assert summary.rows_rejected == len(loaded.rejects) == sum(summary.reasons.values())
    for row in loaded.segments:
        assert row.t0_us < row.t1_us
        assert all(map(math.isfinite, (row.x0, row.y0, row.x1, row.y1)))
    for contact in loaded.contacts:
        assert contact.start_us < contact.end_us
        assert contact.a != contact.b
    for reject in loaded.rejects:
        assert reject.line >= 1
        assert reject.reason.isprintable()
        assert len(reject.reason) < 300


def ingest(kind: str, options: Options | None = None) -> Callable[[Path, Random], None]:
    """A function that reads one format of `precede ingest` and checks the result."""
    return lambda path, random: sound(load(path, kind, options))


def read_contact_list(path: Path, random: Random) -> None:
    read = read_contacts(path)
    assert sum(summary.rows_rejected for summary in read.summaries) == len(read.rejects)


def judge(path: Path, random: Random) -> None:
    order = random.choice(["fifo", "causal", "multicast", "delta", "total", None])
    verdict = verify(
        path,
        order,
        steps=random.choice(["counted", "ordered"]),
        engine="numba" if random.random() < 0.02 else "plain",
    )
    assert verdict.verdict in ("holds", "violated", "unknown")


def judge_foreign(format: str) -> Callable[[Path, Random], None]:
    """A function that verifies a log of another system and checks its counts."""

    def read(path: Path, random: Random) -> None:
        found = verify_foreign(str(path), format, random.choice(["fifo", "causal", "total", None]))
        assert found.verdict.verdict in ("holds", "violated", "unknown")
        counts = found.counts
        assert counts.rows_read == counts.rows_kept + counts.rows_rejected
        assert counts.rows_rejected == sum(counts.reasons.values())
        assert all(reason.isprintable() and len(reason) < 300 for reason in counts.reasons)
        if counts.rows_rejected:
            assert found.verdict.verdict != "holds"

    return read


def read_mobiclique_folder(path: Path, random: Random) -> None:
    """A folder of MobiClique in which the mutated file takes the place of the one it was made from.

    Some files have all their rows, but in any order and any number: the reader takes no other bad file.
    """
    content = path.read_bytes()
    if random.random() < 0.2:
        head, *rows = random.choice(list(MOBICLIQUE.values())[1:]).splitlines(keepends=True)
        content = head + b"".join(random.choices(rows, k=random.randint(0, 9)))
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        for file, text in MOBICLIQUE.items():
            (folder / file).write_bytes(text)
        likely = next((file for file, text in MOBICLIQUE.items() if text[:20] == content[:20]), None)
        (folder / (likely or random.choice(list(MOBICLIQUE)))).write_bytes(content)
        verdict = judge_every_order(read_mobiclique(folder).copies(), random.choice(ORDERS))
        assert verdict.verdict in ("holds", "violated", "unknown")


def scenario(path: Path, random: Random) -> None:
    read_scenario(str(path))


def key_file(path: Path, random: Random) -> None:
    assert all(len(key) == 32 for key in read_keys(path))


TABLES = {
    "calendar": "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n"
    "S,1,1,1,1,1,1,1,20240101,20240105\n",
    "calendar_dates": "service_id,date,exception_type\nS,20240104,2\nX,20240102,1\n",
    "trips": "trip_id,service_id,block_id,shape_id\nt1,S,B,s\nt2,S,B,s\n",
    "stops": "stop_id,stop_lat,stop_lon\n1,48.0,11.0\n2,48.0,11.01\n3,48.02,11.03\n",
    "stop_times": "trip_id,arrival_time,departure_time,stop_id,stop_sequence,shape_dist_traveled\n"
    "t1,8:00:00,8:00:00,1,1,0\nt1,8:05:00,8:06:00,2,2,1\n"
    "t2,9:00:00,9:00:00,2,1,0\nt2,,,3,2,1\nt2,9:20:00,9:20:00,1,3,2\n",
    "shapes": "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence,shape_dist_traveled\n"
    "s,48,11,1,0\ns,48,11.01,2,1\n",
    "frequencies": "trip_id,start_time,end_time,headway_secs\nt1,10:00:00,11:00:00,600\n",
}


def feed(tables: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in tables.items():
            archive.writestr(f"{name}.txt", text)
    return out.getvalue()


def read_feed(path: Path, random: Random) -> None:
    """A mutated archive: half of the time one table in a valid archive is mutated, else the archive itself."""
    if random.random() < 0.5:
        tables = {name: text.encode() for name, text in TABLES.items()}
        for name in random.sample(list(tables), random.randint(1, 2)):
            tables[name] = bent([tables[name]], GTFS_WORDS, random)
        path.write_bytes(feed(tables))
    sound(load(path, "gtfs", Options(date="20240102")))


def parquet() -> list[bytes]:
    rows = [
        {
            "node": n,
            "step": s,
            "kind": k,
            "message_source": m,
            "message_number": i,
            "destinations": [1, 2],
            "deadline_us": 9,
        }
        for n, s, k, m, i in [
            ("a", 1, "broadcast", "a", 1),
            ("b", 1, "delivered", "a", 1),
            ("b", 2, "broadcast", "b", 1),
        ]
    ]
    made = []
    for given in ({}, {"compression": "none"}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), out, **given)
        made.append(out.getvalue())
    return made


GTFS_WORDS = [b"t1", b"S,1,1", b",,,", b'"a,b"', b"8:61:00", b"-1", b"20240231", b"s,91,181,1,0\n"]
LOG = (
    b"node,step,kind,message_source,message_number,destinations,deadline_us,clock_us\n"
    b"a,1,broadcast,a,1,a;b,900,1\nb,1,delivered,a,1,,,5\nb,2,broadcast,b,1,a;b,900,6\na,2,delivered,b,1,,,8\n"
)
OPAQUE = b"node;step;kind;message\na;1;broadcast;x\nb;1;delivered;x\nb;2;sent;y\n"
LOG_WORDS = [
    b"broadcast",
    b"delivered",
    b"node",
    b"step",
    b"message",
    b"incarnation",
    b",,,",
    b"a,1,",
    b'"a\nb"',
]
ROWS = (
    b'{"node":"a","step":1,"kind":"broadcast","message":"x","destinations":["a","b"],"deadline_us":9}\n'
    b'{"node":"b","step":1,"kind":"delivered","message":"x","clock_us":3}\n'
)
NUMBERED = (
    b'{"node":1,"step":1,"kind":"broadcast","message_source":1,"message_number":1}\n'
    b'{"node":2,"step":1,"kind":"delivered","message_source":1,"message_number":1}\n'
)
JSON_WORDS = [
    b"null",
    b"true",
    b'"\\ud800"',
    b"1e400",
    b"{}",
    b"[]",
    b"[[[[",
    b'{"a":' * 40,
    b'"node":',
    b"-0",
    b"[" * 2000,
]
SHIVIZ = (
    b'broadcast x\na {"a":1}\ndelivered x\nb {"a":1,"b":1}\nbroadcast y\nb {"a":1,"b":2}\n'
    b'delivered y\na {"a":2,"b":2}\n'
)
GOVECTOR = b'a {"a":1}\nbroadcast x\nb {"a":1, "b":1}\ndelivered x\nb {"a":1, "b":2}\nbroadcast y\n'
CLOCK_LINES = (
    b'{"node":"a","kind":"broadcast","message":"x","clock":{"a":1}}\n'
    b'{"host":"b","event":"delivered x","vector_clock":{"a":1,"b":1}}\n'
    b'{"node":"b","kind":"broadcast","message":"y","clock":"{\\"a\\":1,\\"b\\":2}"}\n'
)
ETCD = (
    b'{"Header":{"revision":3},"Events":[{"kv":{"key":"Zm9v","mod_revision":2}},'
    b'{"type":1,"kv":{"key":"Zm9v","mod_revision":3}}],"Canceled":false}\n'
    b'{"result":{"header":{"revision":"4"},"events":[{"kv":{"key":"YmFy","mod_revision":"4"}}]}}\n'
)
MOBICLIQUE = {
    "messages.csv": b"# Format: msg_id;user_id;created;type;dst\n1;1;5;M;7\n2;2;9;M;7\n3;1;3;U;2\n4;1;1;B;-1\n",
    "reception.csv": b"# Format: type;msg_id;hop_src_user_id;hop_dst_user_id;dst_timestamp\n"
    b"2;1;2;1;7\n2;2;3;2;10\n2;1;3;2;12\n1;-1;3;1;2\n2;1;4;2;10\n2;2;4;3;10\n",
    "transmission.csv": b"# Format: type;msg_id;bytes;hop_src_user_id;hop_dst_user_id;src_timestamp;status\n"
    b"2;1;90;1;2;6;0\n2;2;90;2;3;9;0\n2;1;90;2;3;11;1\n",
    "interests1.csv": b"# Format: user_id;group_id\n1;7\n2;7\n3;7\n",
    "interests2.csv": b"# Format: user_id;group_id;time_added\n4;7;2\n",
}
CLOCK_CSV = b"node,kind,message,clock\na,broadcast,x,a:1\nb,delivered,x,a:1 b:1\nb,broadcast,y,a:1 b:2\n"
SCENARIO = (
    b'[world]\nkind = "contacts"\nnodes = 5\n[workload]\nevery = "20min"\nfirst = "20s"\nsize = 1000\n'
    b'[run]\nprotocol = "delta_causal"\noptions = { lifetime = "20min" }\nseed = 1\n'
)
POINTS = (
    b'[world]\nkind = "point_to_point"\nnodes = 4\ndelay = "uniform(1, 19)"\n[workload]\nmessages = 9\n'
    b'[run]\nprotocol = "prs"\n'
)

READERS = [
    Reader(
        "gtfs", [feed({name: text.encode() for name, text in TABLES.items()})], GTFS_WORDS, read_feed, ".zip"
    ),
    Reader(
        "gps",
        [
            b"id,time,lat,lon\na,0,48,11\na,10,48.0001,11\nb,5,48,11.1\n",
            b"id,time,lat,lon\nt,2020-01-01T00:00:01,1,2\nt,2020-01-01T00:00:09,1,2\n",
        ],
        [b"lat", b"time", b"2020-02-30 25:00", b"91", b"-181", b"a,1,2,3\n"],
        ingest("gps"),
    ),
    Reader(
        "positions",
        [
            b"node,time,x,y\na,0,1,2\na,1,2,2\nb,0,5,5\n",
            b"# framerate: 25\n1 0 3 4\n2 0 4 4\n1 1 3 5\n",
            b"0 1 2 3 0 0 0 0\n",
        ],
        [b"framerate:", b"x", b"time", b"a 1 2 3\n", b"1e9"],
        ingest("positions"),
    ),
    Reader(
        "ns2",
        [
            b"$node_(1) set X_ 5.0\n$node_(1) set Y_ 6.0\n$node_(1) set Z_ 0.0\n"
            b'$ns_ at 1.0 "$node_(1) setdest 9 9 1.5"\n'
        ],
        [b"$node_(", b"setdest", b"$ns_ at", b"$god_", b'"', b"set X_"],
        ingest("ns2"),
    ),
    Reader(
        "walkers",
        [b"0 create a 1 2 0\n1 setdest a 5 5 0 1 4\n9 destroy a\n0 create b 0 0 0\n"],
        [b"create", b"setdest", b"destroy", b"0 create a 1 1 0\n"],
        ingest("walkers"),
    ),
    Reader(
        "one",
        [b"1 CONN a b up\n5 CONN a b down\n2 C M1 a b 500\n", b"0 100 0 50 0 60 0 0\n0 1 5 5\n1 1 6 6\n"],
        [b"CONN", b"up", b"down", b" C M1 a", b"DE", b"1 S M1 a b"],
        ingest("one"),
    ),
    Reader("tij", [b"20 1 2\n40 1 2\n40 2 3 X Y\n80 1 2\n"], [b"20 1 1\n", b"1 2", b"\t"], ingest("tij")),
    Reader(
        "contacts",
        [b"a,b,start,end\na,b,0,9\nb,c,3,7\n", b"x,y,1,2\n"],
        [b"a,b,5,5\n", b"start", b"end", b"a,a,1,2\n", b'"a,b"'],
        ingest("contacts"),
    ),
    Reader(
        "contact_list",
        [b"a,b,start,end\na,b,0,9\nb,c,3,7\n", b"1 CONN a b up\n5 CONN a b down\n"],
        [b"CONN", b"a,b,5,5\n", b"start"],
        read_contact_list,
    ),
    Reader("verify_csv", [LOG, OPAQUE], LOG_WORDS, judge, ".csv"),
    Reader("verify_json", [ROWS, NUMBERED], JSON_WORDS, judge, ".jsonl"),
    Reader("verify_parquet", parquet(), [b"PAR1", b"node", b"\x15\x00", b"\xff" * 9], judge, ".parquet"),
    Reader("as_shiviz", [SHIVIZ], [*JSON_WORDS, b"(?<event>", b"a {", b"delivered"], judge_foreign("shiviz")),
    Reader("as_govector", [GOVECTOR], [*JSON_WORDS, b"a {", b"delivered"], judge_foreign("govector")),
    Reader("as_etcd_watch", [ETCD], [*JSON_WORDS, b'"kv":', b'"Events":'], judge_foreign("etcd-watch")),
    Reader(
        "as_jsonl_vector_clock",
        [CLOCK_LINES],
        [*JSON_WORDS, b'"clock":', b'"host":'],
        judge_foreign("jsonl-vector-clock"),
    ),
    Reader(
        "as_mobiclique",
        list(MOBICLIQUE.values()),
        [b"2;1;2;1;7\n", b"# Format: ", b";;", b"-1", b";M;", b";U;"],
        read_mobiclique_folder,
    ),
    Reader("as_csv", [CLOCK_CSV], [*LOG_WORDS, b"a:1", b"clock"], judge_foreign("csv")),
    Reader(
        "scenario", [SCENARIO, POINTS], [b"[world]", b"kind", b'"', b"= [", b"seed = ", b"{"], scenario, ".toml"
    ),
    Reader(
        "key_file", [b"# keys\n" + b"ab" * 32 + b"\n" + b"0f" * 32 + b"\n"], [b"#", b"ab" * 32, b"zz"], key_file
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many for each reader")
    parser.add_argument("--reader", action="append", choices=[reader.name for reader in READERS])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object per reader and line")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    failed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for reader in READERS:
            if given.reader and reader.name not in given.reader:
                continue
            outcome = fuzz(reader, given.inputs, given.seed, Path(folder))
            failed += outcome.failures
            values = {name: getattr(outcome, name) for name in Outcome.__struct_fields__}
            print(
                json.dumps(values) if given.json else "  ".join(f"{n} {v}" for n, v in values.items()),
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
