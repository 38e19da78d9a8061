"""The text format of Prometheus, version 0.0.4: families of metrics to text, and text to samples."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from precede.core.errors import BadInput
from precede.runtime.observe.families import Family, Labels

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_LABEL: Final = 200
"""How many characters a label's value has at most; a longer one is cut."""

_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_MEANINGS: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def to_text(families: Iterable[Family]) -> str:
    r"""Return families in the text format. Values of labels are escaped.

    >>> from precede.runtime.observe.families import labelled
    >>> print(to_text([labelled("x_total", "counter", "things", "by", {'a"b': 2})]), end="")
    # HELP x_total things
    # TYPE x_total counter
    x_total{by="a\"b"} 2
    """
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.meaning}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{_labels(own)} {_number(value)}" for own, value in family.samples.items()]
    return "".join(f"{line}\n" for line in lines)


def samples_of(text: str) -> Iterator[tuple[str, Labels, float]]:
    """Yield the samples of a text as (name, labels, value). Raise BadInput for a line that is none.

    >>> list(samples_of('# a comment\\nx_total{by="b",to="c"} 2'))
    [('x_total', (('by', 'b'), ('to', 'c')), 2.0)]
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise BadInput(f"line {number}: not a sample of a metric: {line[:80]!r}")
        labels = _read_labels(match[2] or "", number)
        try:
            value = float(match[3])
        except ValueError:
            raise BadInput(f"line {number}: not a number: {match[3][:40]!r}") from None
        yield match[1], labels, value


def _read_labels(text: str, line: int) -> Labels:
    labels, at = [], 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise BadInput(f'line {line}: labels are not NAME="VALUE": {text[at : at + 40]!r}')
        labels.append((match[1], re.sub(r'\\[\\"n]', lambda found: _MEANINGS[found[0]], match[2])))
        at = match.end()
    return tuple(labels)


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    cut = value if len(value) <= MOST_LABEL else value[: MOST_LABEL - 1] + "…"
    text = "".join(_ESCAPES.get(character, character) for character in cut)
    return text.encode("utf-8", "backslashreplace").decode()


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
