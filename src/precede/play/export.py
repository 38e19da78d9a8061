"""The static page: recorded worlds that a browser replays without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from precede.core.instants import Duration, Instant
from precede.experiments.run import Run
from precede.play.lessons import Lesson, Progress, lessons
from precede.play.record import Input
from precede.play.saving import load
from precede.play.server import OWN, PAGE, SHARED, asset
from precede.play.session import Session

POLICY: Final = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
"""The content-security policy of the page. A page opened from a disk has no origin, hence `file:`."""
FRAMES: Final = 160
"""The number of frames of a recording, beside one for each input."""
_LIVE: Final = '<script defer src="assets/play.js"></script>'


def write_export(
    folder: Path, saved: Path | None = None, lessons_only: Sequence[str] | None = None
) -> list[str]:
    """Write the static page with lessons (none named: all) and a saved world; return the recordings' names."""
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    for name in (*SHARED, *OWN, "recorded.js"):
        (folder / "assets" / name).write_bytes(asset(name))
    listed = []
    if saved is not None:
        run, record = load(saved)
        shown = Lesson(
            key="saved",
            title=f"A saved world: {run.protocol}, seed {run.seed}",
            place=0,
            question=f"{len(record.inputs)} inputs, recorded.",
            try_this="Press Play.",
            steps=(),
            recorded_end="0s",
        )
        _write(folder, shown, run, record.inputs, record.end_us)
        listed.append(shown.listed())
    for lesson in lessons().values():
        if lessons_only is not None and lesson.key not in lessons_only:
            continue
        _write(folder, lesson, lesson.run(), lesson.inputs(), lesson.end())
        listed.append(lesson.listed())
    index = f"window.precedeWorlds = {_literal(listed)};\n"
    (folder / "data" / "index.js").write_text(index, encoding="utf-8")
    (folder / "index.html").write_text(_page(), encoding="utf-8")
    return [item["key"] for item in listed]


def recorded_frames(
    lesson: Lesson, run: Run, inputs: Sequence[Input], end: Instant, every: Duration
) -> Iterator[dict[str, Any]]:
    """Yield what a page needs first, then the frames of a world in which these inputs happen."""
    session, progress = Session(run, lesson.title), Progress(lesson)
    yield {**session.hello(), "lesson": lesson.plain()}
    following = list(inputs)
    while True:
        frame = session.frame()
        yield {**frame, "lesson": progress.seen(session, frame)}
        if session.now >= end or session.ended:
            return
        until = min(session.now + every, end)
        session.advance_to(min(until, following[0].at_us) if following else until)
        while following and following[0].at_us <= session.now:
            session.apply(following.pop(0))


def _write(folder: Path, lesson: Lesson, run: Run, inputs: Sequence[Input], end: Instant) -> None:
    hello, *frames = recorded_frames(lesson, run, inputs, end, max(end // FRAMES, 1))
    data = _literal({"hello": hello, "frames": frames})
    script = f"(window.precedeRecordings ||= {{}})[{_literal(lesson.key)}] = {data};\n"
    (folder / "data" / f"{lesson.key}.js").write_text(script, encoding="utf-8")


def _literal(value: Any) -> str:
    """Return a value as JavaScript: JSON, in which two line separators are escaped for old engines."""
    text = msgspec.json.encode(value).decode()
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _page() -> str:
    """Return the page of the game with its recordings in place of a server."""
    page = asset(PAGE).decode()
    scripts = ("data/index.js", "assets/recorded.js", "assets/play.js")
    listed = "\n".join(f'<script defer src="{script}"></script>' for script in scripts)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head = '<meta charset="utf-8">'
    assert _LIVE in page
    assert head in page
    return page.replace(_LIVE, listed).replace(head, f"{head}\n{policy}")
