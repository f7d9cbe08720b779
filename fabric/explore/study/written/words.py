"""Text of metrics, settings and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from fabric.explore.study.outcome import split_metric
from fabric.explore.study.space import Scalar, Setting, Space, keyed
from fabric.messages.text import visible
from fabric.runs.report import FIGURES

_EXTRA: Final = "extra."
_DIGITS: Final = 6
_SPANS: Final = 6
_FIRST_SPANS: Final = 3


@dataclass(frozen=True)
class Label:
    """The name and the unit of a metric; the unit is empty for plain numbers."""

    name: str
    unit: str

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


def label(metric: str) -> Label:
    """Return a metric's label; a program's own metric keeps its name."""
    statistic, metric = split_metric(metric)
    if statistic:
        inner = label(metric)
        return Label(f"{statistic} {inner.name}", inner.unit)
    if metric in FIGURES:
        return Label(*FIGURES[metric])
    name = visible(metric.removeprefix(_EXTRA)).replace("_", " ")
    return Label(name.removesuffix(" bytes"), "bytes" if name.endswith(" bytes") else "")


def number_text(value: float) -> str:
    """Return a number with thousands separators; fractions have six significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if value.is_integer() and abs(value) < 10**15:
        return f"{int(value):,}"
    return f"{value:,.{_DIGITS}g}"


def rounded(value: float | None) -> float | None:
    """Round a float to an integer if it has six digits or more before the point."""
    return round(value) if isinstance(value, float) and abs(value) >= 10 ** (_DIGITS - 1) else value


def scalar_text(value: Scalar) -> str:
    """Return a value of a setting as ``--vary`` takes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return visible(str(value))


def axis_values(values: Sequence[Scalar]) -> list[str]:
    """Return the values of an axis as text; files are without folders if their names differ."""
    texts = [scalar_text(value) for value in values]
    paths = map(PurePath, texts)
    names = [
        path.name if path.suffix[1:].isalpha() else text
        for path, text in zip(paths, texts, strict=True)
    ]
    return names if len(set(names)) == len(set(texts)) else texts


def texts_by_key(values: Sequence[Scalar]) -> dict[object, str]:
    """Return the texts of ``axis_values`` by the key of each value."""
    return dict(zip(map(keyed, values), axis_values(values), strict=True))


def varying(settings: Mapping[str, Sequence[Scalar]]) -> list[str]:
    """Return the names that have several values."""
    return [name for name, values in settings.items() if len(values) > 1]


def setting_text(setting: Setting, names: Sequence[str]) -> str:
    """Return the values of some axes in a sentence: ``tile_n=8, regions=4``."""
    return ", ".join(
        f"{visible(name)}={scalar_text(setting[name])}" for name in names if name in setting
    )


def setting_names(space: Space) -> list[str]:
    """Return a text for each setting of a space, with its values as in ``axis_values``."""
    texts = {name: texts_by_key(values) for name, values in space.values.items()}
    return [
        setting_text({name: texts[name][keyed(x)] for name, x in setting.items()}, list(setting))
        for setting in space
    ]


def listed_points(indices: Sequence[int]) -> str:
    """Return ``point 3``, ``points 3, 4 and 9 to 12`` or ``points 0 to 5, 7, 9 and 8 others``."""
    if len(indices) == 1:
        return f"point {indices[0]}"
    spans: list[list[int]] = []
    for index in indices:
        if spans and index == spans[-1][-1] + 1:
            spans[-1].append(index)
        else:
            spans.append([index])
    shown = spans if len(spans) <= _SPANS else spans[:_FIRST_SPANS]
    parts: list[str] = []
    for span in shown:
        parts += [f"{span[0]} to {span[-1]}"] if len(span) > 2 else map(str, span)
    if rest := len(indices) - sum(map(len, shown)):
        parts.append(f"{rest:,} others")
    return f"points {' and '.join(filter(None, [', '.join(parts[:-1]), parts[-1]]))}"
