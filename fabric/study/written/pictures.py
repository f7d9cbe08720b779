"""The pictures of a study: those of every study, and its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.study.outcome import metric
from fabric.study.written.effects_picture import draw_effects, effects_caption
from fabric.study.written.front_picture import draw_front, front_caption
from fabric.study.written.painting import painted
from fabric.study.written.parallel_picture import draw_parallel
from fabric.study.written.words import varying
from fabric.telling.errors import FabricError, said
from fabric.telling.place import raising_place
from fabric.telling.users_code import pass_signals
from fabric.telling.wording import file_name, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fabric.study.result import StudyResult

__all__ = ["Drawn", "Pictures", "Shown", "drawn", "first_pictures"]


@dataclass(frozen=True)
class Shown:
    """A picture as a page has it.

    Attributes:
        name: of its files, without a suffix.
        title: above it.
        caption: what to see in it.
        svg: what one of the files has.
    """

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Drawn(Shown):
    """A picture that was drawn.

    Attributes:
        png: what the other file has.
    """

    png: bytes


@dataclass(frozen=True)
class Pictures:
    """What could be drawn.

    Attributes:
        made: the study's own first.
        troubles: a sentence for each picture that could not be drawn.
    """

    made: tuple[Drawn, ...]
    troubles: tuple[str, ...]


@dataclass(frozen=True)
class _Wanted:
    name: str
    title: str
    caption: str
    draw: Callable[[Figure], object]
    own: bool = False


def drawn(result: StudyResult) -> Pictures:
    """Draw the pictures of a study. One that fails says so; the others are drawn all the same."""
    if importlib.util.find_spec("matplotlib") is None:
        return Pictures((), ("there are no pictures: expected matplotlib, of the extra study",))
    made: dict[str, Drawn] = {}
    troubles = []
    own = list(_own(result))
    # Where nothing is looked for, and the study has pictures of its own, these tell it.
    wanted = own if own and not result.study.minimize else [*own, *_of_all(result)]
    for each in wanted:
        name = file_name(each.name)
        if name in made:
            troubles.append(f"picture {visible(each.name)}: there is one already of that name")
            continue
        try:
            svg, png = painted(each.draw, formulas=each.own)
        except BaseException as error:  # noqa: BLE001 - the study's own code
            pass_signals(error)
            troubles.append(f"picture {visible(each.name)}: {_told(error)}")
            continue
        made[name] = Drawn(name, visible(each.title), visible(each.caption), svg, png)
    return Pictures(tuple(made.values()), tuple(troubles))


def first_pictures(result: StudyResult, folder: Path) -> list[Shown]:
    """Return the pictures that tell a study best, as they were written into its folder.

    They are the study's own; of a study that has none, the first of those of every study. A file
    that is not there is left out: why it is not was told when it could not be written.
    """
    wanted = list(_own(result)) or list(_of_all(result))[:1]
    found = []
    for each in wanted:
        name = file_name(each.name)
        file = folder / "pictures" / f"{name}.svg"
        if file.is_file():
            svg = file.read_text(encoding="utf-8")
            found.append(Shown(name, visible(each.title), visible(each.caption), svg))
    return found


def _own(result: StudyResult) -> Iterator[_Wanted]:
    for picture in result.study.pictures:
        draw = partial(_titled, picture.title, partial(picture.draw, result))
        yield _Wanted(picture.name, picture.title, picture.caption, draw, own=True)


def _of_all(result: StudyResult) -> Iterator[_Wanted]:
    """Yield the pictures that say something of a study."""
    study = result.study
    runs = [each for each in result.outcomes if metric(each, study.objectives[0]) is not None]
    if not runs:
        return
    if len(study.minimize) > 1:
        yield _Wanted(
            "front", "The front", front_caption(result), lambda figure: draw_front(result, figure)
        )
    what = "point" if study.has_inputs else "run"
    if varying(study.space.values):
        yield _Wanted(
            "effects",
            "What each parameter does",
            effects_caption(result),
            lambda figure: draw_effects(result, figure),
        )
        yield _Wanted(
            "parallel",
            f"All {what}s",
            f"Each line is a {what}, from its parameters to what it came to"
            + ("; the front in blue." if result.front else "."),
            lambda figure: draw_parallel(result, figure),
        )


def _titled(title: str, draw: Callable[[Figure], object], figure: Figure) -> None:
    draw(figure)
    figure.suptitle(visible(title), fontsize=11, parse_math=False)


def _told(error: BaseException) -> str:
    """Return what went wrong, and where in the study's file."""
    if isinstance(error, FabricError):
        return str(error)
    place = raising_place(error)
    return f"{said(error)}, raised at {place}" if place else said(error)
