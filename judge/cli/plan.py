"""`judge plan`: what a run will ask, before anything is paid; and the labels a measure takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.cli.printing import print_table, say, tell
from judge.errors import UsageError
from judge.settings import CACHE, ENGINE, JUDGING, LIMITS, MODELS, Settings, flag

if TYPE_CHECKING:
    from judge.run.job import Job
    from judge.run.plan import Plan
    from judge.verdict import Usage

EPILOG = """**Examples**

`judge plan stories.jsonl -m openai:gpt-4o` — prices for the cost column come from judge.toml

`judge plan --labels --measure kappa --expect 0.6 --width 0.1` — labels for an interval this wide
"""

_WIDTHS_AT = (50, 100, 200, 500, 1000)
_BUDGET = (
    *("measure", "expect", "width", "prevalence", "level"),
    *("true_positive_rate", "true_negative_rate", "judged"),
)


def _about(help: str) -> Any:
    """An option that goes with --labels."""
    return typer.Option(help=help, rich_help_panel="Labels")


@opt.with_settings(MODELS, JUDGING, ENGINE, LIMITS, CACHE)
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    labels: Annotated[bool, _about("Labels that an interval takes; needs no INPUT.")] = False,
    measure: Annotated[
        str | None,
        _about("accuracy, kappa, true-positive-rate or pass-rate (corrected for errors)."),
    ] = None,
    expect: Annotated[float | None, _about("The expected value of the measure.")] = None,
    width: Annotated[float | None, _about("The wanted full width, high minus low.")] = None,
    prevalence: Annotated[
        float | None,
        _about("Share of items that people pass. [default: 0.5; for pass-rate --expect]"),
    ] = None,
    level: Annotated[float | None, _about("Level of the interval. [default: 0.95]")] = None,
    true_positive_rate: Annotated[
        float | None,
        _about("For pass-rate: share of what people pass that the judge passes. [default: 0.9]"),
    ] = None,
    true_negative_rate: Annotated[
        float | None,
        _about("For pass-rate: share of what people fail that the judge fails. [default: 0.9]"),
    ] = None,
    judged: Annotated[
        int | None,
        _about("For pass-rate: items judged beside the labelled ones. [default: 1000]"),
    ] = None,
) -> None:
    """Estimate calls, tokens and cost of a validation, or the labels that a measure needs.

    No model is asked anything; its key, server or GPU may be missing.
    """
    budget = {n: context.params[n] for n in _BUDGET if context.params[n] is not None}
    if labels:
        if inputs:
            raise UsageError("--labels reads no INPUT: it plans before there is any")
        show_labels(**budget)
        return
    if budget:
        raise UsageError(f"{flag(next(iter(budget)))} goes with --labels")
    sources = opt.inputs_or_stdin(inputs, context)
    from judge.run.job import Job

    job = Job(sources, format=format, limit=limit, sample=sample, sample_seed=settings.seed)
    show(job, settings)


def show(job: Job, settings: Settings) -> None:
    """Print the estimate of a validation on standard output."""
    from judge.run.plan import plan, unasked_client
    from judge.run.setup import Setup

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


def show_labels(**budget: Any) -> None:
    """Print the labels that a wanted width takes, and the widths at other numbers of labels.

    Raises:
        UsageError: the measure, its expected value or the width is missing or out of range.
    """
    from judge.stats.labels import MOST_LABELS, Budget

    for name in ("measure", "expect", "width"):
        if name not in budget:
            raise UsageError(f"--labels needs {flag(name)}")
    width = budget.pop("width")
    try:
        plan = Budget(**budget)
        needed = plan.labels_needed(width)
    except ValueError as error:
        raise UsageError(str(error)) from None
    counts = sorted({*_WIDTHS_AT, *([needed] if needed else [])})
    rows = []
    for count in counts:
        expected = plan.width(count)
        told = "none" if expected is None else f"{expected:.3f}"
        rows.append((str(count), told, "<- wanted" if count == needed else ""))
    asked = f"{plan.measure} {plan.expect:g} with an interval {width:g} wide"
    if needed is None:
        more = "; judge more items" if plan.measure == "pass-rate" else ""
        say(f"{asked}: not even {MOST_LABELS:,} labels are enough{more}")
    else:
        say(f"{asked}: {needed} labels")
    head = f"width of the {plan.level * 100:g} % interval"
    print_table(("labels", head, ""), rows, labels=0, text=("",))


def _told(usage: Usage) -> str:
    cost = "cost unknown (no price in judge.toml)"
    if usage.cost_usd is not None:
        cost = f"{usage.cost_usd:.4f} USD"
    return f"{usage.replies} calls, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"
