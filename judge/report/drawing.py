"""A workflow as a picture: nodes in layers (Sugiyama layout by grandalf), drawn with matplotlib.

All measures are inches, y upwards. Dashed arrows are taken or not, as the checks turn out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError, missing_extra

_WIDTH, _HEIGHT = 2.3, 0.5
_ACROSS, _DOWN = 0.9, 0.7
_MARGIN = 0.25
_BULGE = 0.9
_PORT = 0.45
"""How far from a box's middle an arrow may touch its upper or lower side, as a share of half."""
_NAMES = {"__start__": "start", "__end__": "end"}
_LINE, _FILL, _PLAIN = "#33475b", "#eef2f7", "#ffffff"

Point = tuple[float, float]
Places = Mapping[str, Point]


@dataclass(slots=True)
class _Box:
    """What grandalf wants to know of a node: its size; it writes the place."""

    w: float = _WIDTH
    h: float = _HEIGHT
    xy: Point = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one node to another, along a line or a Bezier curve through `points`."""

    source: str
    target: str
    conditional: bool
    points: tuple[Point, ...]


def draw(graph: Any, path: Path) -> None:
    """Write a LangGraph graph to `path`, as SVG or PNG by its ending.

    Raises:
        UsageError: another ending, a path that cannot be written, or the `report` extra is missing.
    """
    if path.suffix not in (".svg", ".png"):
        raise UsageError(f"{path}: a picture is written as .svg or .png")
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("drawing needs grandalf and matplotlib", "report") from error
    drawn = graph.get_graph()
    places = layout(drawn)
    lines = arrows(places, [(e.source, e.target, bool(e.conditional)) for e in drawn.edges])
    left, bottom, right, top = _extent(places, lines)
    figure = Figure(figsize=(right - left, top - bottom))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    for line in lines:
        _draw_arrow(axes, line)
    for name, place in places.items():
        _draw_node(axes, name, place)
    try:
        # Without its salt and its date the same graph gives the same file.
        with rc_context({"svg.hashsalt": "judge"}):
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {})
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def layout(drawn: Any) -> dict[str, Point]:
    """The middle of each node's box.

    Raises:
        UsageError: the `report` extra is missing.
    """
    try:
        from grandalf.graphs import Edge, Graph, Vertex
        from grandalf.layouts import SugiyamaLayout
    except ImportError as error:
        raise missing_extra("drawing needs grandalf and matplotlib", "report") from error
    vertices = {name: Vertex(name) for name in drawn.nodes}
    for vertex in vertices.values():
        vertex.view = _Box()
    edges = [Edge(vertices[e.source], vertices[e.target]) for e in drawn.edges]
    laid = SugiyamaLayout(Graph(list(vertices.values()), edges).C[0])
    laid.xspace, laid.yspace = _ACROSS, _DOWN
    laid.init_all(roots=[vertices["__start__"]])
    laid.draw()
    return {name: (v.view.xy[0], -v.view.xy[1]) for name, v in vertices.items()}


def arrows(places: Places, edges: Sequence[tuple[str, str, bool]]) -> list[Arrow]:
    """A way for each edge that crosses no box."""
    return [
        Arrow(source, target, conditional, _way(places, source, target))
        for source, target, conditional in edges
    ]


def _way(places: Places, source: str, target: str) -> tuple[Point, ...]:
    (x, y), (to_x, to_y) = places[source], places[target]
    if source == target:
        side = x + _WIDTH / 2
        high, low = y + _HEIGHT / 4, y - _HEIGHT / 4
        return (side, low), (side + _BULGE, low - 0.3), (side + _BULGE, high + 0.3), (side, high)
    towards = (to_x > x) - (to_x < x)
    if to_y < y:
        start = (x + _port(towards), y - _HEIGHT / 2)
        straight = start, (to_x - _port(towards), to_y + _HEIGHT / 2)
        if not any(_crosses(straight, places[n]) for n in places if n not in (source, target)):
            return straight
        if towards:
            beside = to_x - towards * _WIDTH / 2
            return (x, start[1]), (x, to_y), (beside, to_y)
        side = x + _WIDTH / 2
        return (side, y), (side + _BULGE, y), (side + _BULGE, to_y), (side, to_y)
    if towards:
        # Back up, on the outside of the arrow that came down.
        return (
            (x - _port(towards), y + _HEIGHT / 2),
            (x - _port(towards), to_y),
            (to_x - towards * _WIDTH / 2, to_y),
        )
    side = x - _WIDTH / 2
    return (side, y), (side - _BULGE, y), (side - _BULGE, to_y), (side, to_y)


def _port(towards: int) -> float:
    return towards * _PORT * _WIDTH / 2


def _crosses(line: tuple[Point, Point], box: Point, steps: int = 200) -> bool:
    (x, y), (to_x, to_y) = line
    clear = 0.1
    return any(
        abs(x + (to_x - x) * i / steps - box[0]) < _WIDTH / 2 + clear
        and abs(y + (to_y - y) * i / steps - box[1]) < _HEIGHT / 2 + clear
        for i in range(steps + 1)
    )


def _extent(places: Places, lines: Sequence[Arrow]) -> tuple[float, float, float, float]:
    """(left, bottom, right, top) of the whole picture."""
    points = [point for line in lines for point in line.points]
    for x, y in places.values():
        points += [(x - _WIDTH / 2, y - _HEIGHT / 2), (x + _WIDTH / 2, y + _HEIGHT / 2)]
    across, up = zip(*points, strict=True)
    return min(across) - _MARGIN, min(up) - _MARGIN, max(across) + _MARGIN, max(up) + _MARGIN


def _draw_node(axes: Any, name: str, place: Point) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = place
    pad = 0.08
    corner = (x - _WIDTH / 2 + pad, y - _HEIGHT / 2 + pad)
    axes.add_patch(
        FancyBboxPatch(
            corner,
            _WIDTH - 2 * pad,
            _HEIGHT - 2 * pad,
            boxstyle=f"round,pad={pad}",
            facecolor=_PLAIN if name in _NAMES else _FILL,
            edgecolor=_LINE,
        )
    )
    axes.text(x, y, _NAMES.get(name, name).replace("_", " "), ha="center", va="center", fontsize=11)


def _draw_arrow(axes: Any, arrow: Arrow) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    codes = {2: Curve.LINETO, 3: Curve.CURVE3, 4: Curve.CURVE4}
    rest = [codes[len(arrow.points)]] * (len(arrow.points) - 1)
    axes.add_patch(
        FancyArrowPatch(
            path=Curve(arrow.points, [Curve.MOVETO, *rest]),
            arrowstyle="-|>",
            mutation_scale=14,
            color=_LINE,
            linestyle=(0, (4, 3)) if arrow.conditional else "-",
            shrinkA=0,
            shrinkB=1,
        )
    )
