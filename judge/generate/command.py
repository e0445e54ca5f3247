"""`judge generate`: parse flags, generate records, print the funnel."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge import plugins
from judge.cli import options as opt
from judge.cli.printing import counted, print_lines, print_message, print_table
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.generate.generation import Generation
    from judge.generate.generator import DraftOptions, Generator
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge generate --list
  judge generate reply.yaml mails.csv -m openai:gpt-4o -o replies.jsonl
  judge generate reply.yaml mails.csv -m openai:gpt-4o-mini \\
      --judge-model openai:gpt-4o --review mine.jsonl -o replies.jsonl

Discarded records are in OUT.discarded.jsonl, with stage and cause under judge.generated. Lines
are resumed and cached like those of judge validate. Write "labels": {"derivation": "yes"} (the
check's right answer) into lines of the review; run again with --resume --decisions FILE.
"""

_COUNTS_SHOWN = 8


@opt.with_settings(
    *("model", "method", "votes", "rounds", "rubric", "profile", opt.OF_WORKFLOWS),
    *("temperature", "vote_temperature", "rewrite_temperature", "max_tokens"),
    *("reasoning_effort", "seed", "map", "Engine", "Speed and money", "Cache", "Traces"),
    model="Model that writes.",
    seed="Seed of random draws, the writer and votes.",
    rounds="How often a failing draft is rewritten, at most.",
    rewrite_temperature="Temperature of the writer.",
    rubric="Your own rubric, also of a writer: replaces the set's own, or is asked as well.",
)
def command(
    settings: Settings,
    name: Annotated[
        str, typer.Argument(metavar="SET|FILE.yaml", help="See --list.", show_default=False)
    ] = "",
    sources: Annotated[list[str] | None, opt.files("SOURCE", "What records are made from;")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the sets and their options.")] = False,
    judge_model: Annotated[
        list[str] | None,
        typer.Option(metavar="PROVIDER:MODEL", help="Model that judges. [default: the writer]"),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=PROVIDER:MODEL", help="Model of one step; repeatable."),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A set of models and settings, such as the paper's."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B,...", help="An option of the set; repeatable."),
    ] = None,
    out: opt.Out = None,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    summary: Annotated[
        Path | None, typer.Option(help="Also write funnel and diversity to this file, as JSON.")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="Also write what judges reject to this file, for people to decide."),
    ] = None,
    decisions: Annotated[
        Path | None, typer.Option(help="A review with people's labels, which decide.")
    ] = None,
    max_similarity: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            show_default=False,
            help="Reject records more similar than X to an earlier one.",
        ),
    ] = 1.0,
    each: Annotated[
        int | None, typer.Option(min=1, help="Drafts for each source line (and label).")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="At most N drafts.")] = None,
    dry_run: opt.DryRun = False,
    quiet: opt.Quiet = False,
) -> None:
    """Have a model write records, and keep those that judges pass.

    The papers' sets (--list), or any records, by your own recipe. Records go to standard output
    or OUT, everything else to standard error.
    """
    if list_:
        _list_sets()
        return
    if not name:
        raise UsageError(
            "name a set and its sources, or a recipe (FILE.yaml); judge generate --list shows the "
            "sets"
        )
    if not sources:
        raise UsageError(
            f"name the files that records are made from: judge generate {shlex.quote(name)} SOURCE"
        )
    from judge.api import Job
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, end, print_short
    from judge.generate.generation import generate, plan_generation, roles_of
    from judge.generate.generator import DraftOptions
    from judge.generate.recipe import load_generator
    from judge.verdict import LOST, Verdict

    generator = load_generator(name)
    models = judge_model or ()
    own = _pairs(option, "--option")
    if unknown := [key for key in own if key not in generator.options]:
        names = ", ".join(generator.options) or "none"
        raise UsageError(f"--option {unknown[0]}: {generator.name} has {names}")
    options = DraftOptions(settings.seed, limit, each, own, settings.columns)
    steps = _pairs(step, "--step")
    settings = roles_of(settings, generator, judges=models, steps=steps, roles=roles)
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        limit=limit,
        review=review,
        decisions=decisions,
        summary=summary,
    )
    if dry_run:
        from judge.cli.plan import show_plan

        plan = plan_generation(job, settings, generator=generator, options=options)
        show_plan(plan, "step", "drafts")
        return
    announce(settings, quiet=quiet)
    if not quiet and not (models or roles):
        _announce_judging(generator, settings)
    if not quiet:
        _announce_replaced(generator, sources, options)
    with watcher(job, settings, quiet=quiet) as watching:
        report, task = generate(
            job,
            settings,
            watching,
            generator=generator,
            options=options,
            max_similarity=max_similarity,
            name=name,
        )
    if not (report.broken_pipe or quiet):
        # A draft that no rubric judges abstains, and is kept.
        unsure = (Verdict.ABSTAIN,) if generator.workflow.checks or settings.rubric else ()
        print_short(report, "draft", (Verdict.FAIL, *unsure, *LOST))
        if task.funnel.drafts:
            _print_made(task)
    end(report, job, settings, quiet=quiet)


def _announce_judging(generator: Generator, settings: Settings) -> None:
    """Print that the writer judges its own drafts, or that no judge does."""
    checks = [*generator.workflow.checks, *settings.rubric]
    if not checks:
        print_message(f"{generator.name} names no rubrics: nothing is judged, every draft is kept")
    elif not all(check in settings.model_for for check in checks):
        writer = next(iter(settings.model), "the embedded model")
        print_message(f"no --judge-model: {writer} judges its own drafts")


def _announce_replaced(generator: Generator, sources: Sequence[str], options: DraftOptions) -> None:
    """Print which fields of the first source line what is written replaces; standard input cannot
    be read ahead."""
    from judge.generate.generator import rows
    from judge.records.kinds import normalise, normalised

    files = [source for source in sources if source != "-"]
    lines = rows(files, options) if generator.writes and files else ()
    first = next((line.visible for line in lines if line.raw is None), {})
    written = normalised(generator.writes)
    if names := [name for name in first if normalise(name) in written]:
        keep = f"--map OTHER_NAME={names[0]} keeps the source's"
        print_message(f"what is written replaces {', '.join(names)} of the source; {keep}")


def _pairs(texts: Sequence[str] | None, flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, _, content = (part.strip() for part in text.partition("="))
        if not name or not content:
            raise UsageError(f"{flag} {text}: write NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{flag} {name} is given twice")
        pairs[name] = content
    return pairs


def _print_made(made: Generation) -> None:
    """Print the funnel, the number of records kept, their diversity, and their file."""
    funnel, different = made.funnel, made.diversity
    rows = [
        (stage, str(before), str(after), ", ".join(f"{cause} {n}" for cause, n in causes.items()))
        for stage, before, after, causes in funnel.rows()
    ]
    print_table(("stage", "in", "out", "lost"), rows, err=True)
    parts = [f"{funnel.kept} of {counted(funnel.drafts, 'draft')} kept"]
    parts += [f"{counted(funnel.edits, 'edit')}, {counted(funnel.dropped, 'value')} dropped"] * (
        funnel.edits + funnel.dropped > 0
    )
    parts += [f"{funnel.overruled} kept by people"] * (funnel.overruled > 0)
    shares = (f"distinct-{n} {share:.2f}" for n, share in different.distinct.items() if share)
    lines = ["; ".join(parts)]
    if any("truncated" in causes for *_, causes in funnel.rows()):
        lines.append("truncated: --max-tokens N lets the writer write more")
    if different.records:
        near = f"near-duplicates: {different.near} of {different.records}"
        lines.append("; ".join(filter(None, (near, ", ".join(shares)))))
    texts = {"capitalised words inside sentences": different.capitalised or Counter()}
    for name, counts in {**different.values, **texts}.items():
        most = ", ".join(f"{text} {n}" for text, n in counts.most_common(_COUNTS_SHOWN))
        lines += [f"{name}: {len(counts)} different; {most}"] if counts else []
    print_lines(lines, err=True)
    if different.cross is not None and different.crossed:
        heads = sorted({column for _, column in different.crossed})
        rows_by = sorted({row for row, _ in different.crossed})
        cells = [[row, *(str(different.crossed[row, c]) for c in heads)] for row in rows_by]
        print_table([" by ".join(different.cross), *heads], cells, err=True)
    if (lost := made.job.discarded) is not None:
        from judge.cli.summary import next_report

        lines = [f"output: {made.job.out}; not kept: {lost}"]
        if funnel.kept < funnel.drafts:
            lines.append(next_report(lost))
        print_lines(lines, err=True)
    elif funnel.kept < funnel.drafts:
        print_lines(["drafts that were not kept are written only with -o OUT"], err=True)


def _list_sets() -> None:
    from judge.generate.recipe import GENERATORS, load_generator

    sets = [load_generator(name) for name in plugins.names(GENERATORS)]
    print_table(
        ("name", "what for", "steps"), [(s.name, s.title, ", ".join(s.stages)) for s in sets]
    )
    print_lines(
        [
            f"{s.name} --option {name}=...: {about}"
            for s in sets
            for name, about in s.options.items()
        ]
    )
    print_lines(
        [
            f"{s.name} --roles {name}: {r.writer} writes, {r.judge} judges"
            + "".join(f", {setting} = {json.dumps(value)}" for setting, value in r.settings.items())
            for s in sets
            for name, r in s.roles.items()
        ]
    )
