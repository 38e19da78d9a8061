"""The ONE's settings files as scenarios: `precede simulate settings.txt`.

Hosts that move at random in a field or on a map, or contacts from a file of events, become a world of contacts.
The router becomes a dissemination, the message generator a workload. Every setting that has no counterpart is
named, as `key = value`; those that only concern The ONE itself (reports, its window, its time step) are not.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput

_LINE: Final = re.compile(r"\s*([A-Za-z]\w*(?:\.\w+)*)\s*=\s*(.*?)\s*")
_NUMBER: Final = re.compile(r"(-?\d*\.?\d+)\s*([kMG]?)")
_FACTORS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_MODELS: Final = {
    "RandomWaypoint": "random-waypoint",
    "RandomWalk": "random-walk",
    "ShortestPathMapBasedMovement": "street-waypoint",
}
_ROUTERS: Final = {
    "EpidemicRouter": "epidemic",
    "SprayAndWaitRouter": "spray_and_wait",
    "ProphetRouter": "prophet",
    "MaxPropRouter": "maxprop",
    "DirectDeliveryRouter": "direct_delivery",
    "FirstContactRouter": "first_contact",
}
_GENERATORS: Final = {"MessageEventGenerator": 1, "BroadcastEventGenerator": 0}
_OF_THE_ONE: Final = re.compile(
    r"(Report|Optimization|GUI)\..*|Scenario\.(name|updateInterval|nrofHostGroups|simulateConnections)"
    r"|Events\d*\.(nrof|prefix)|Group\d*\.(groupID|nrofInterfaces)|\w+\.type|MapBasedMovement\.nrofMapFiles"
)


def is_one_settings(text: str) -> bool:
    """Return whether a text is a settings file of The ONE: it sets a scenario or a group."""
    return re.search(r"^\s*(Scenario|Group\d*)\.\w+\s*=", text, re.MULTILINE) is not None


def read_one_settings(path: Path, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the tables of a scenario, and the settings that have no counterpart."""
    settings = _Settings(path, text)
    groups = _groups(settings)
    first, hosts = groups[0], sum(int(settings.number(f"Group{n}.nrofHosts") or 0) for n in groups)
    world = {"kind": "contacts", **(_recorded(settings) or _walking(settings, first, hosts))}
    interface = settings.take(f"Group{first}.interface1")
    if interface and (speed := settings.number(f"{interface}.transmitSpeed")):
        world["bandwidth"] = speed
    if interface and (metres := settings.number(f"{interface}.transmitRange")) and "generator" in world:
        world["range"] = metres
    run: dict[str, Any] = {"protocol": "unordered", "options": _options(settings, first)}
    if end := settings.number("Scenario.endTime"):
        run["end"] = f"{end:g}s"
    if warmup := settings.number("Report.warmup"):
        run["warmup"] = f"{warmup:g}s"
    workload = _workload(settings, hosts)
    if ttl := settings.number(f"Group{first}.msgTtl"):
        workload["lifetime"] = f"{ttl:g}min"
    return {"world": world, "workload": workload, "run": run}, settings.unread()


class _Settings:
    """The settings of a file. Those that are taken are read; the others are named in the end."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.taken: set[str] = set()
        for number, line in enumerate(text.splitlines(), 1):
            content = line.partition("#")[0]
            if not content.strip():
                continue
            match = _LINE.fullmatch(content)
            if match is None:
                raise BadInput(f"{path}:{number}: expected `Key.name = value`, got {content.strip()[:60]!r}")
            self.values[match[1]], self.lines[match[1]] = match[2], number

    def take(self, key: str) -> str | None:
        """Return a setting, of a group also from `Group`; the first of several that are written [a; b]."""
        common = re.sub(r"^Group\d+\.", "Group.", key)
        present = key if key in self.values else common
        if present not in self.values:
            return None
        value = self.values[present]
        if value.startswith("["):  # values for several runs of a batch
            value = value.strip("[] ").split(";")[0].strip()
        self.taken.add(present)
        return value

    def number(self, key: str) -> float | None:
        """Return a number, with The ONE's suffixes k, M and G; None if it is not set."""
        numbers = self.numbers(key)
        return numbers[0] if numbers else None

    def numbers(self, key: str) -> list[float]:
        """Return numbers with commas between; none if they are not set."""
        value = self.take(key)
        if value is None:
            return []
        matches = [_NUMBER.fullmatch(part.strip()) for part in value.split(",")]
        if not all(matches):
            raise self.wrong(key, f"expected numbers, got {value!r}")
        return [float(match[1]) * _FACTORS[match[2]] for match in matches if match is not None]

    def wrong(self, key: str, cause: str) -> BadInput:
        common = re.sub(r"^Group\d+\.", "Group.", key)
        line = self.lines.get(key, self.lines.get(common))
        return BadInput(f"{self.path}{'' if line is None else f':{line}'}: {key}: {cause}")

    def unread(self) -> tuple[str, ...]:
        """Return the settings that were not taken and do not concern The ONE alone."""
        return tuple(
            f"{key} = {value}"
            for key, value in self.values.items()
            if key not in self.taken and not _OF_THE_ONE.fullmatch(key)
        )


def _groups(settings: _Settings) -> list[int]:
    """Return the numbers of the groups that move and route like the first group that can be read."""
    count = int(settings.number("Scenario.nrofHostGroups") or 1)
    keys = ("movementModel", "router", "speed", "waitTime", "bufferSize", "msgTtl", "interface1")
    alike: dict[int, tuple[str | None, ...]] = {}
    recorded = _recorded(settings) is not None
    for number in range(1, count + 1):
        values = tuple(settings.take(f"Group{number}.{key}") for key in keys)
        if recorded or values[0] in _MODELS:
            alike[number] = values
        for key in keys:
            settings.taken.discard(f"Group{number}.{key}")
    if not alike:
        model, known = settings.take("Group1.movementModel"), ", ".join(_MODELS)
        cause = f"{model!r} cannot be read (readable: {known}, contacts from a file)"
        raise settings.wrong("Group1.movementModel", cause)
    first = next(iter(alike.values()))
    groups = [number for number, values in alike.items() if values == first]
    for number in groups:
        for key in (*keys, "groupID"):
            settings.take(f"Group{number}.{key}")
    return groups


def _recorded(settings: _Settings) -> dict[str, Any] | None:
    """Return the keys of a world whose contacts are in a file of events; None if there is no such file."""
    for number in range(1, int(settings.number("Events.nrof") or 0) + 1):
        if (settings.take(f"Events{number}.class") or "").endswith("ExternalEventsQueue"):
            file = settings.take(f"Events{number}.filePath") or ""
            events_file = next(
                (place for place in (settings.path.parent / file, Path(file)) if place.is_file()), None
            )
            if events_file is None:
                raise settings.wrong(f"Events{number}.filePath", f"no such file: {file}")
            return {"contacts": str(events_file.absolute())}
        settings.taken.discard(f"Events{number}.class")
    return None


def _walking(settings: _Settings, group: int, hosts: int) -> dict[str, Any]:
    """Return the keys of a world whose hosts a generator moves."""
    model = _MODELS[str(settings.take(f"Group{group}.movementModel"))]
    if not hosts:
        raise settings.wrong(f"Group{group}.nrofHosts", "no hosts")
    world: dict[str, Any] = {"generator": model, "nodes": hosts}
    if end := settings.number("Scenario.endTime"):
        world["duration"] = f"{end:g}s"
    if speed := settings.numbers(f"Group{group}.speed"):
        world["speed"] = speed
    if (pause := settings.numbers(f"Group{group}.waitTime")) and model != "random-walk":
        world["pause"] = pause
    if (size := settings.numbers("MovementModel.worldSize")) and model != "street-waypoint":
        world["field"] = size
    if seed := settings.number("MovementModel.rngSeed"):
        world["generator_seed"] = int(seed)
    if model == "street-waypoint":
        file = settings.take("MapBasedMovement.mapFile1") or ""
        map_file = next((place for place in (settings.path.parent / file, Path(file)) if place.is_file()), None)
        if map_file is None:
            raise settings.wrong("MapBasedMovement.mapFile1", f"no such file: {file}")
        world["streets"] = str(map_file.absolute())
    return world


def _options(settings: _Settings, group: int) -> dict[str, Any]:
    """Return the dissemination that a group's router stands for, with its options."""
    router = str(settings.take(f"Group{group}.router"))
    if router not in _ROUTERS:
        raise settings.wrong(
            f"Group{group}.router", f"{router!r} cannot be read (readable: {', '.join(_ROUTERS)})"
        )
    options: dict[str, Any] = {"dissemination": _ROUTERS[router]}
    if size := settings.number(f"Group{group}.bufferSize"):
        options["cache_bytes" if router == "EpidemicRouter" else "buffer"] = int(size)
    if router == "SprayAndWaitRouter":
        if copies := settings.number(f"{router}.nrofCopies"):
            options["copies"] = int(copies)
        if settings.values.get(f"{router}.binaryMode", "true").lower() == "true":
            settings.take(f"{router}.binaryMode")
    if router == "ProphetRouter" and (unit := settings.number(f"{router}.secondsInTimeUnit")):
        options["unit"] = f"{unit:g}s"
    return options


def _workload(settings: _Settings, hosts: int) -> dict[str, Any]:
    """Return the workload of the first generator of messages.

    The ONE draws a host for each message; here every node sends, at an interval that is longer by their number.
    """
    for number in range(1, int(settings.number("Events.nrof") or 0) + 1):
        kind = settings.take(f"Events{number}.class") or ""
        if kind in _GENERATORS:
            least, most = _range(settings.numbers(f"Events{number}.interval") or [25.0, 35.0])
            sources = settings.numbers(f"Events{number}.hosts") or [0.0, float(hosts)]
            count = int(sources[-1] - sources[0]) if len(sources) > 1 else hosts
            sizes = _range(settings.numbers(f"Events{number}.size") or [100.0])
            return {
                "every": f"uniform({least * count:g}, {most * count:g})",
                "first": f"uniform(0, {most * count:g})",
                "size": round(sum(sizes) / 2),
                "to": _GENERATORS[kind],
            }
        if not kind.endswith("ExternalEventsQueue"):
            settings.taken.discard(f"Events{number}.class")
    raise BadInput(f"{settings.path}: no generator of messages (readable: {', '.join(_GENERATORS)})")


def _range(numbers: Sequence[float]) -> tuple[float, float]:
    return numbers[0], numbers[-1]
