"""A figure with its title and note, and the style that all plots share.

The text of records is shown as it is and never read as markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, PALE = "#0072b2", "#d55e00", "#6b6b6b", "#c9c9c9"
"""Okabe and Ito (2008): told apart by people with any kind of colour blindness."""

UNDEFINED = "–"
SMALL = 9.0

_SCRIPTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "PingFang SC",
)
"""Fonts for what DejaVu Sans lacks, taken where they are installed."""


def need_matplotlib() -> None:
    """Raise UsageError, with the way out, where matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing_extra("plots need matplotlib", "calibrate") from error


@dataclass(frozen=True, slots=True)
class Heading:
    """What a figure shows, of which judge on which check."""

    check: str
    model: str
    what: str


@contextmanager
def style() -> Iterator[None]:
    """The settings that figures are made and saved under; those of the caller come back after."""
    import warnings

    from matplotlib import rc_context
    from matplotlib import style as styles
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    settings: dict[str, Any] = {
        "font.family": ["DejaVu Sans", *(name for name in _SCRIPTS if name in installed)],
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": "black",
        "ytick.labelcolor": "black",
        # A dollar sign in a name is a dollar sign.
        "text.parse_math": False,
        "text.usetex": False,
        # Text that can be searched and read out, in whatever script; and the same bytes each time.
        "svg.fonttype": "none",
        "svg.hashsalt": "judge",
    }
    with warnings.catch_warnings(), rc_context():
        styles.use(["default", settings])
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def sheet(
    heading: Heading, subtitle: str, *, width: float, height: float, note: str | None = None
) -> Figure:
    """An empty figure with its words; its size in inches, `height` without the words."""
    from matplotlib.figure import Figure

    wide = round(width * 12.5)
    above = [
        f"{short(heading.check, 36)}: {drawable(heading.what)}",
        short(heading.model, 64),
        *textwrap.wrap(drawable(subtitle), wide),
    ]
    below = textwrap.wrap(drawable(note or ""), wide)
    whole = height + 0.2 * (len(above) + len(below) + 1)
    figure = Figure(figsize=(width, whole), layout="constrained")
    figure.suptitle("\n".join(above), x=0.02, ha="left", size="medium")
    if below:
        figure.supxlabel("\n".join(below), x=0.02, ha="left", size=SMALL, color=GREY)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg, the same bytes for the same figure."""
    # The layout's last digits differ from run to run, and an SVG names its parts after all of them.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position(original=True).bounds
        axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))
    # The name may hold dots of its own: a suffix is added, not replaced.
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0], dpi=150)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def drawable(text: str) -> str:
    """The text with a blank for each character that cannot be shown, or that XML does not have."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def short(text: str, size: int) -> str:
    """On one line, in characters that can be shown, its middle left out where it is too long."""
    shown = " ".join(drawable(text).split())
    if len(shown) <= size:
        return shown
    end = size // 2
    return f"{shown[: size - 1 - end]}…{shown[-end:]}"
