"""`judge review`: a person decides the records that judges left open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.label import AnnotatorName, Open, Port, announce, end, print_unasked
from judge.cli.printing import print_message

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge review judged.jsonl
  judge review judged.jsonl --failed --annotator ann
  judge validate r.jsonl -m MODEL -o judged.jsonl --resume --fail-under 0.95

The page shows each record with its votes, quotes and reasons; keys as in judge label. Answers are
kept in OUT.decisions.jsonl, and written into OUT when the page ends; what is decided then is not
asked again. If several people, with pages open at the same time, answer a question, more than half
must agree to decide it.
"""


@opt.with_settings("ask", "name", "on", "answers", "pass_", "rubric", "map")
def command(
    settings: Settings,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="What judge validate -o wrote.")],
    failed: Annotated[bool, typer.Option("--failed", help="Also records that failed.")] = False,
    annotator: AnnotatorName = None,
    port: Port = 0,
    open_page: Open = True,
) -> None:
    """Decide on a page what judges left open: abstained and unreadable records.

    The answers are kept in OUT as a person's checks, which decide: gates, build and report count
    them.
    """
    from judge.web.review import review

    outcome = review(
        out,
        settings,
        failed=failed,
        annotator=annotator or opt.login_name(),
        ready=lambda address: announce(address, annotator, open_page=open_page),
        port=port,
    )
    if not outcome.of:
        print_unasked(outcome)
        print_message(f"{out}: nothing is open" + (" that can be shown" if outcome.reasons else ""))
        return
    end(outcome, out)
