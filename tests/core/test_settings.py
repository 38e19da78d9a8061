"""Settings: what a struct declares, and how written values are read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Struct

from precede.core.instants import MILLISECOND, SECOND, Duration
from precede.core.settings import Note, nearest, settings_in


class Example(Struct, frozen=True, kw_only=True):
    every: Annotated[Duration, Note("how often", least=MILLISECOND, is_duration=True)] = SECOND
    until: Annotated[Duration | None, Note("when it ends", is_duration=True)] = None
    share: Annotated[float, Note("a share", most=1.0)] = 0.5
    count: Annotated[int, Note("how many", least=1)]
    loud: Annotated[bool, Note("loudly")] = False
    tree: Annotated[Literal["one", "many"], Note("how many trees")] = "one"
    name: Annotated[str, Note("its name")] = ""
    pair: Annotated[tuple[int, int], Note("two numbers", read=tuple, shape="[first, second]")] = (1, 2)


SETTINGS = settings_in(Example)


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("every", "20s", 20 * SECOND),
        ("every", 5 * SECOND, 5 * SECOND),
        ("every", None, SECOND),
        ("until", "none", None),
        ("share", "0.25", 0.25),
        ("count", "7", 7),
        ("loud", "yes", True),
        ("loud", False, False),
        ("tree", "many", "many"),
        ("name", 5, "5"),
        ("pair", [3, 4], (3, 4)),
    ],
)
def test_a_written_value_is_converted_to_the_declared_type(key: str, written: Any, value: Any) -> None:
    assert SETTINGS[key].read(written) == value


@pytest.mark.parametrize(
    ("key", "written", "cause"),
    [
        ("every", "0s", "0 is not between 1ms and 24000000h"),
        ("every", "none", "not a duration"),
        ("share", 1.5, "1.5 is not between 0 and 1"),
        ("share", float("nan"), "nan is not between 0 and 1"),
        ("share", True, "expected a number, got True"),
        ("count", 0, "0 is not between 1 and"),
        ("count", 1.0, "expected a whole number, got 1.0"),
        ("count", "9" * 50, "expected a whole number"),
        ("loud", "perhaps", "expected true or false, got 'perhaps'"),
        ("tree", "two", "'two' is none of one, many"),
        ("name", [], "expected text"),
        ("pair", 3, "not iterable"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_cause(key: str, written: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        SETTINGS[key].read(written)


def test_a_declaration_describes_itself() -> None:
    assert {key: setting.bounds() for key, setting in SETTINGS.items()} == {
        "every": "at least 1ms",
        "until": "",
        "share": "0 to 1",
        "count": "at least 1",
        "loud": "",
        "tree": "one | many",
        "name": "",
        "pair": "[first, second]",
    }
    defaults = {key: setting.written_default() for key, setting in SETTINGS.items()}
    assert defaults | {"every": "1s", "share": "0.5", "loud": "false", "pair": "[1, 2]"} == defaults
    assert [key for key, setting in SETTINGS.items() if setting.required] == ["count"]


def test_an_unknown_word_gets_the_nearest_known_one() -> None:
    assert nearest("lifetme", SETTINGS) == f"(known: {', '.join(SETTINGS)})"
    assert nearest("cuont", SETTINGS) == "(did you mean 'count'?)"
