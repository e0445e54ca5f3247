"""`judge audit`: parse the flags, put hostile text to a judge, show how often its verdict turns."""

from __future__ import annotations

import gc
import json
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import nothing, say, tell
from judge.cli.result_tables import Folder, hand_over, refuse_folder
from judge.settings import CACHE, LIMITS, Settings

EPILOG = """**Examples**

`judge audit` — the embedded local model

`judge audit -m openai:gpt-4o -o audit.jsonl --tables tables` — every pair kept, tables as files

`judge audit -m openai:gpt-4o --rubric relevance --attack orders --attack fence` — a part of it

`judge audit --rubric my-relevance.yaml -m vllm:org/model` — a rubric of your own

`judge audit --list` — the cases, without asking anything

Each case is a clean record and the same one with hostile text put in; both are judged as judge does
it, by judge's prompt alone, and with an undefended one. The suite: docs/hostile-text.md.

**Exit codes**: 0 all judged; 2 bad usage; 3 some pairs have no verdict; 4 a resource ended (model,
budget, disk, cache or OUT), and --resume goes on; 130 interrupted.
"""


@opt.with_settings(
    *("model", "cheap_model", "cheap_margin", "reading", "votes", "rule", "rubric"),
    *("temperature", "vote_temperature", "seed", "margin", "profile", LIMITS, CACHE),
    rubric="Only this rubric, or one of your own in the place of the built-in one of its name; "
    "may be repeated.",
)
def command(
    settings: Settings,
    out: opt.Out = None,
    tables: Folder = None,
    as_json: opt.Json = False,
    attack: Annotated[
        list[str] | None,
        typer.Option(metavar="FAMILY", help="Only attacks of this family; may be repeated."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the cases, and stop.")] = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
) -> None:
    """Put hostile text to a judge and say how often it turns the verdict.

    Records of judge's own making, for every rubric, with orders to the judge, fake messages, fake
    verdicts and the like put in; beside judge's own prompt, the same question is put without its
    defences. Tables go to standard output, lines for each case to OUT alone.
    """
    opt.refuse_both(resume, overwrite)
    opt.need_calibrate("judge audit", "numpy", "scipy", *(["matplotlib"] if tables else []))
    gc.disable()
    from judge.audit.auditing import audit, chosen
    from judge.audit.results import tables as made
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, exchanged, troubles
    from judge.run.job import Job

    rubrics, families = settings.rubric, attack or ()
    picked = chosen(rubrics, families, limit=limit, sample=sample, seed=settings.seed)
    if listed:
        heads = ("case", "rubric", "attack", "wanted", "injection")
        rows = [(c.id, c.check, c.family, c.wanted, c.injection) for c in picked.cases]
        if as_json:
            found = [dict(zip(heads, row, strict=True)) for row in rows]
            say(json.dumps(found, ensure_ascii=False, indent=1))
            return
        for row in (heads, *rows):
            shown = row[-1].encode("unicode_escape").decode()
            typer.echo("\t".join((*row[:-1], shown)))
        return
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
        report, results = audit(job, settings, watching, picked)
    if report.finished and results:
        judges = ", ".join(settings.model)
        drawn = made(results, seed=settings.seed)
        hand_over(drawn, tables, as_json=as_json, benchmark="audit", model=judges)
    if report.fatal is not None:
        tell(report.fatal)
    if not quiet:
        for line in troubles(report.summary):
            tell(line)
        tell(f"{len(results)} cases in {report.seconds:.1f} s, {exchanged(report)}")
        if limit == 0:
            tell(nothing((), 0))
    if not report.finished:
        from judge.cli.evaluate import how_to_go_on

        told = how_to_go_on(report, {"out": out, "resume": resume, "overwrite": overwrite})
        kept = "; replies in the cache are not asked again" if settings.cache else ""
        tell(f"not finished, so there are no tables yet; {told}{kept}")
    raise typer.Exit(report.exit_code)
