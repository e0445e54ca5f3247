"""`judge plan`: what a run will ask, before anything is paid; and the labels a measure takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import print_table, say, tell
from judge.errors import UsageError
from judge.settings import CACHE, ENGINE, JUDGING, LIMITS, MODELS, Settings

if TYPE_CHECKING:
    from judge.run.plan import Plan
    from judge.verdict import Usage

EPILOG = """**Examples**

`judge plan stories.jsonl -m openai:gpt-4o` — prices for the cost column come from judge.toml

`judge plan --labels --expect 0.6` — how wide the intervals of a kappa of 0.6 will be
"""

_LABELS = (50, 100, 200, 500, 1000, 2000, 5000)


@opt.with_settings(MODELS, JUDGING, ENGINE, LIMITS, CACHE)
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Widths of intervals by number of labels; needs no INPUT."),
    ] = False,
    expect: Annotated[
        float, typer.Option(min=0, max=1, help="With --labels: the measure that is expected.")
    ] = 0.8,
) -> None:
    """Estimate calls, tokens and cost of a validation, or the labels that a measure needs.

    No model is asked anything; its key, server or GPU may be missing.
    """
    if labels:
        if inputs:
            raise UsageError("--labels reads no INPUT: it plans before there is any")
        show_labels(expect)
        return
    sources = opt.inputs_or_stdin(inputs, context)
    from judge.run.job import Job
    from judge.run.plan import plan, unasked_client
    from judge.run.setup import Setup

    job = Job(sources, format=format, limit=limit, sample=sample, sample_seed=settings.seed)
    settings = settings.model_copy(update={"cache": False, "max_cost": None})
    show_plan(plan(job, Setup.of(settings, build=unasked_client)), "check", "records")


def show_plan(made: Plan, by: str, what: str) -> None:
    """Print an estimate on standard output, and on standard error what cannot be asked about.

    Args:
        by: what calls are counted by (check, task).
        what: what is judged or asked (records, items).
    """
    from judge.cli.summary import troubles
    from judge.run.plan import CHARACTERS_PER_TOKEN

    for line in troubles(made.bad):
        tell(line)
    rows = [(name, str(c["least"]), str(c["most"])) for name, c in made.by_check.items()]
    print_table((by, "least calls", "most calls"), rows)
    bad = f", {made.bad.records} that cannot be asked about" if made.bad.records else ""
    say(f"{made.records} {what}{bad}")
    say(f"least: {_told(made.least)}\nmost:  {_told(made.most)}")
    say(
        f"Tokens at {CHARACTERS_PER_TOKEN:g} characters each; replies already in the cache and\n"
        "re-asked replies are not counted."
    )


def _told(usage: Usage) -> str:
    cost = "cost unknown (no price in judge.toml)"
    if usage.cost_usd is not None:
        cost = f"{usage.cost_usd:.4f} USD"
    return f"{usage.replies} calls, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"


def show_labels(expected: float) -> None:
    """Print how wide the 95 % interval of each measure will be, by number of labels.

    Raises:
        UsageError: no measure can be expected to be this.
    """
    from judge.stats.labels import MEASURES, Budget, Measure

    def width(measure: Measure, count: int) -> str:
        found = Budget(measure, expected).width(count)
        return "none" if found is None else f"{found:.3f}"

    try:
        rows = [(f"{n:,}", *(width(measure, n) for measure in MEASURES)) for n in _LABELS]
    except ValueError as error:
        raise UsageError(f"--expect {expected:g}: {error}") from None
    print_table(
        ("labels", *MEASURES),
        rows,
        title=f"Width of the 95 % interval where the measure is {expected:g}",
        notes=("pass-rate: corrected for a judge's errors of 10 %, over 1,000 judged items.",),
    )
