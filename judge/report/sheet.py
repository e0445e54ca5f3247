"""A figure with its title, subtitle and note, and the words and colours that all plots share.

Measures of text are inches. The text of records is shown as it is and never read as markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from judge.stats.intervals import Estimate

BLUE, ORANGE, GREY, PALE = "#0072b2", "#d55e00", "#6b6b6b", "#c9c9c9"
"""Okabe and Ito (2008): told apart by people with any kind of colour blindness."""

UNDEFINED = "–"
SMALL = 9.0

_TITLE, _BODY = 13.0, 10.0
_MARGIN = 0.18
_POINTS = 72.0
_LEADING = 1.35
_CHARACTER = 0.56
"""Width of a character of DejaVu Sans on the average, over its size; wide enough for bold."""

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
        raise UsageError("plots need matplotlib: pip install 'judge[calibrate]'") from error


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
        "font.size": _BODY,
        "axes.labelsize": _BODY,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": SMALL,
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
    """An empty figure with its words; what is drawn in it keeps clear of them.

    `height` is for the drawing alone: the words make the figure higher by what they take.
    """
    from matplotlib.figure import Figure

    title = f"{short(heading.check, 36)}: {drawable(heading.what)}"
    under = [short(heading.model, 64), *_wrapped(subtitle, width, _BODY)]
    below = _wrapped(note or "", width, SMALL)
    head = _MARGIN + _lines(1, _TITLE) + _lines(len(under), _BODY) + 0.08
    foot = _lines(len(below), SMALL) + (_MARGIN if below else 0.0)
    whole = head + height + foot
    figure = Figure(figsize=(width, whole), layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0.01, foot / whole, 0.97, height / whole), h_pad=0.06, w_pad=0.06)
    left = _MARGIN / width
    top = 1 - _MARGIN / whole
    figure.text(left, top, title, size=_TITLE, weight="bold", va="top")
    figure.text(
        left,
        top - _lines(1, _TITLE) / whole,
        "\n".join(under),
        size=_BODY,
        color=GREY,
        va="top",
        linespacing=_LEADING,
    )
    if below:
        words = "\n".join(below)
        bottom = _MARGIN * 0.6 / whole
        figure.text(left, bottom, words, size=SMALL, color=GREY, linespacing=_LEADING)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg, the same bytes for the same figure."""
    _settle(figure)
    # The name may hold dots of its own: a suffix is added, not replaced.
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0], dpi=150)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _settle(figure: Figure) -> None:
    """Lay the figure out once and for all.

    The solver's last digits differ from run to run, and an SVG names its parts after all of them.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position(original=True).bounds
        axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))


def share_axis(axis: Any, low: float = 0.0) -> None:
    """Make an axis one of shares, from `low` (0, for kappa also -0.5 or -1) to 1."""
    steps = 5 if low == 0 else round((1 - low) / 0.5)
    axis.set_ticks([low + (1 - low) * step / steps for step in range(steps + 1)])
    axis.set_major_formatter("{x:g}")


def legend_above(axes: Axes, columns: int = 3) -> None:
    """The legend over the axes, where nothing is drawn."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.6,
    )


def count_bars(axes: Axes, counts: Sequence[int], ticks: Sequence[str], turned: bool) -> None:
    """Bars side by side, each with its count on top and its own tick below."""
    axes.bar(range(len(counts)), counts, width=0.72, color=PALE)
    for place, count in enumerate(counts):
        axes.annotate(
            str(count),
            (place, count),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            size=SMALL,
        )
    axes.set_xticks(range(len(counts)), ticks, rotation=90 if turned else 0)
    axes.set_yticks([])
    axes.set_ylim(0, 1.3 * max(counts, default=0) or 1)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def number(estimate: Estimate) -> str:
    """Value and interval to two places, a dash where it is undefined."""
    if estimate.value is None:
        return UNDEFINED
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def items(count: int) -> str:
    return f"{count} item" if count == 1 else f"{count} items"


def probability(value: float) -> str:
    """To three places, but never rounded to 0 or 1."""
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


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


def _wrapped(text: str, width: float, size: float) -> list[str]:
    characters = int((width - 2 * _MARGIN) * _POINTS / (size * _CHARACTER))
    return textwrap.wrap(drawable(text), characters)


def _lines(count: int, size: float) -> float:
    return count * size * _LEADING / _POINTS
