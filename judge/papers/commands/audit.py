"""`judge audit`: parse flags, put hostile text to a judge, print how often verdicts turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge.cli import options as opt
from judge.cli.printing import print_message

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge audit                                             the local model
  judge audit -m openai:gpt-4o -o audit.jsonl
  judge audit --rubric relevance --limit 5                a part
  judge audit --rubric my-relevance.yaml -m vllm:org/model

Each case is a clean record and the same one with hostile text put in; both are judged as judge does
it, by judge's prompt alone, and with an undefended one. The suite: docs/hostile-text.md.
"""


@opt.with_settings(
    *("model", "cheap_model", "cheap_margin", "method", "votes", "rubric", "map"),
    *(
        "temperature",
        "vote_temperature",
        "max_tokens",
        "reasoning_effort",
        "seed",
        "abstain_margin",
        "profile",
        "Speed and money",
        "Cache",
    ),
    rubric="Only this rubric, or your own version of a built-in one; repeatable.",
    map="For a rubric about your own fields: fill NAME from this field of the suite's records.",
)
def command(
    settings: Settings,
    out: opt.Out = None,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
    limit: opt.Limit = None,
) -> None:
    """Measure how often hostile text turns a judge's verdict.

    The suite puts orders to the judge, fake messages, fake verdicts and the like into records of
    its own, for every rubric; the same question is also asked without judge's defences. Tables go
    to standard output, lines for each case to OUT alone.
    """
    opt.need_calibrate("judge audit")
    from judge.api import Job
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, end, print_short
    from judge.cli.tables import print_tables
    from judge.papers.hostile import audit, wanted
    from judge.papers.hostile_suite import cases
    from judge.papers.hostile_tables import tables

    rubrics = wanted(settings.rubric)
    picked = cases(rubrics, columns=settings.columns)[:limit]
    job = Job(
        inputs=(),
        out=out,
        resume=resume,
        overwrite=overwrite,
        # What is chosen is all that there is, and the length that progress is shown of.
        sample=len(picked),
        limit=limit,
        silent=True,
    )
    announce(settings, quiet=quiet)
    with watcher(job, quiet=quiet) as watching:
        report, results = audit(job, settings, watching, rubrics, picked)
    if report.finished and results:
        print_tables(tables(results, seed=settings.seed), as_json=as_json, all_tables=all_tables)
    if not quiet:
        print_short(report, "case")
    if not report.finished:
        print_message("not finished, so there are no tables yet")
    end(report, job, settings, quiet=quiet)
