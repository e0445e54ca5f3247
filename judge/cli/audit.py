"""`judge audit`: parse the flags, put hostile text to a judge, show how often its verdict turns."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.options import need_calibrate
from judge.cli.printing import nothing, say, tell
from judge.settings import CACHE, LIMITS, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge.audit.auditing import Audited, Picked
    from judge.audit.suite import Case

EPILOG = """**Examples**

`judge audit` — the embedded local model

`judge audit -m openai:gpt-4o -o audit.jsonl --tables tables` — every pair kept, tables as files

`judge audit -m openai:gpt-4o --rubric relevance --attack orders --attack fence` — a part of it

`judge audit --rubric my-relevance.yaml -m vllm:org/model` — a rubric of your own

`judge audit --list` — the cases, without asking anything

Each case is a clean record and the same one with hostile text put in; both are judged as judge does
it, by judge's prompt alone, and with an undefended one. The suite: docs/hostile-text.md.

**Exit codes**: 0 all judged; 2 bad usage; 3 some pairs have no verdict; 4 the model is out of
reach, or disk, cache or OUT cannot be written to; 130 interrupted (replies are in the cache).
"""


@opt.with_settings(
    *("model", "cheap_model", "cheap_margin", "reading", "votes", "rule", "rubric"),
    *("temperature", "vote_temperature", "seed", "margin", "profile", LIMITS, CACHE),
    rubric="Only this rubric, or one of your own in the place of the built-in one of its name; "
    "may be repeated.",
)
def command(
    context: typer.Context,
    settings: Settings,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write a line for each case here.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for every table as CSV, JSON and figure.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the tables, or the list, as JSON.")
    ] = False,
    attack: Annotated[
        list[str] | None,
        typer.Option(metavar="FAMILY", help="Only attacks of this family; may be repeated."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the cases, and stop.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with OUT: keep what is finished, redo errors.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT and tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Only the first N cases.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="N cases drawn at random with --seed.")
    ] = None,
) -> None:
    """Put hostile text to a judge and say how often it turns the verdict.

    Records of judge's own making, for every rubric, with orders to the judge, fake messages, fake
    verdicts and the like put in; beside judge's own prompt, the same question is put without its
    defences. Tables go to standard output.
    """
    opt.refuse_both(resume, overwrite)
    if listed:
        _list(_picked(context, settings).cases, as_json=as_json)
        return
    need_calibrate("judge audit", "numpy", "scipy", *(["matplotlib"] if tables else []))
    gc.disable()
    from judge.audit.auditing import audit
    from judge.cli.progress import watcher
    from judge.cli.result_tables import refuse_folder
    from judge.cli.summary import announce
    from judge.run.job import Job

    picked = _picked(context, settings)
    refuse_folder(tables, overwrite or resume)
    job = Job(
        inputs=(),
        out=out,
        resume=resume,
        overwrite=overwrite,
        # What is picked is all that there is, and the length that progress is shown of.
        sample=len(picked.cases),
        silent=True,
    )
    announce(settings, quiet=quiet)
    with watcher(job, quiet=quiet) as watching:
        found = audit(job, settings, watching, picked)
    _finish(found, settings, context)


def _picked(context: typer.Context, settings: Settings) -> Picked:
    from judge.audit.auditing import chosen

    given = context.params
    return chosen(
        settings.rubric,
        tuple(given["attack"] or ()),
        limit=given["limit"],
        sample=given["sample"],
        seed=settings.seed,
    )


def _list(cases: Sequence[Case], *, as_json: bool) -> None:
    if as_json:
        say(json.dumps([_told(case) for case in cases], ensure_ascii=False, indent=1))
        return
    typer.echo("\t".join(("case", "rubric", "attack", "wanted", "injection")))
    for case in cases:
        shown = case.injection.encode("unicode_escape").decode()
        typer.echo("\t".join((*list(_told(case).values())[:-1], shown)))


def _told(case: Case) -> dict[str, str]:
    return {
        "case": case.id,
        "rubric": case.check,
        "attack": case.family,
        "wanted": case.wanted,
        "injection": case.injection,
    }


def _finish(found: Audited, settings: Settings, context: typer.Context) -> None:
    """Print and write the tables of a run that came to its end; say how to go on with others."""
    from judge.cli.summary import exchanged, troubles

    report, given = found.report, context.params
    if report.finished and found.results:
        from judge.audit.measuring import tables
        from judge.cli.result_tables import hand_over

        hand_over(
            tables(found.results, seed=settings.seed),
            given["tables"],
            as_json=given["as_json"],
            benchmark="audit",
            model=", ".join(settings.model),
        )
    if report.fatal is not None:
        tell(report.fatal)
    if not given["quiet"]:
        for line in troubles(report.summary):
            tell(line)
        tell(f"{len(found.results)} cases in {report.seconds:.1f} s, {exchanged(report)}")
        if given["limit"] == 0:
            tell(nothing((), 0))
    if not report.finished:
        from judge.cli.evaluate import how_to_go_on

        kept = "; replies in the cache are not asked again" if settings.cache else ""
        tell(f"not finished, so there are no tables yet; {how_to_go_on(report, given)}{kept}")
    raise typer.Exit(report.exit_code)
