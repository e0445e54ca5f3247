"""A workflow as a picture: nodes in layers (Sugiyama layout by grandalf), drawn with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError

_WIDTH, _HEIGHT = 2.3, 0.5
_NAMES = {"__start__": "start", "__end__": "end"}


@dataclass(slots=True)
class _Box:
    """What grandalf wants to know of a node: its size; it writes the place."""

    w: float = _WIDTH
    h: float = _HEIGHT
    xy: tuple[float, float] = (0.0, 0.0)


def draw(graph: Any, path: Path) -> None:
    """Write a LangGraph graph to `path`, as SVG or PNG by its ending.

    Raises:
        UsageError: another ending, or the `report` extra is not installed.
    """
    if path.suffix not in (".svg", ".png"):
        raise UsageError(f"{path}: a picture is written as .svg or .png")
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise UsageError("drawing needs pip install 'judge[report]'") from error
    places, edges = _layout(graph.get_graph())
    height = max(y for _, y in places.values()) - min(y for _, y in places.values())
    figure, axes = pyplot.subplots(figsize=(9, max(3.0, height * 0.75 + 1)))
    for source, target, conditional in edges:
        _arrow(axes, places[source], places[target], conditional)
    for name, (x, y) in places.items():
        axes.text(
            x,
            y,
            _NAMES.get(name, name).replace("_", " "),
            ha="center",
            va="center",
            fontsize=10,
            bbox={
                "boxstyle": "round,pad=0.45",
                "facecolor": "#eef2f7" if name not in _NAMES else "#ffffff",
                "edgecolor": "#33475b",
            },
        )
    axes.margins(0.15)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", dpi=150, metadata=_no_date(path))
    pyplot.close(figure)


def _no_date(path: Path) -> dict[str, str | None] | None:
    return {"Date": None} if path.suffix == ".svg" else None


def _layout(
    drawn: Any,
) -> tuple[dict[str, tuple[float, float]], list[tuple[str, str, bool]]]:
    try:
        from grandalf.graphs import Edge, Graph, Vertex
        from grandalf.layouts import SugiyamaLayout
    except ImportError as error:
        raise UsageError("drawing needs pip install 'judge[report]'") from error
    vertices = {name: Vertex(name) for name in drawn.nodes}
    for vertex in vertices.values():
        vertex.view = _Box()
    edges = [Edge(vertices[e.source], vertices[e.target]) for e in drawn.edges]
    laid = SugiyamaLayout(Graph(list(vertices.values()), edges).C[0])
    laid.xspace, laid.yspace = 0.9, 0.7
    laid.init_all(roots=[vertices["__start__"]])
    laid.draw()
    places = {name: (v.view.xy[0], -v.view.xy[1]) for name, v in vertices.items()}
    return places, [(e.source, e.target, bool(e.conditional)) for e in drawn.edges]


def _arrow(
    axes: Any, start: tuple[float, float], end: tuple[float, float], conditional: bool
) -> None:
    upwards = end[1] >= start[1]
    axes.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": "#33475b",
            "linestyle": "--" if conditional else "-",
            "shrinkA": 16,
            "shrinkB": 16,
            "connectionstyle": f"arc3,rad={0.35 if upwards else 0.0}",
        },
    )
