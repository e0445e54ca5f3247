"""`judge serve`: serve a profile's judges over System One's protocol."""

from __future__ import annotations

import os
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import print_message
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.settings import Settings

KEY = "JUDGE_SERVE_KEY"

EPILOG = """\b
Examples:
  judge calibrate labels.jsonl --ask "Is this e-mail polite?" --on email \\
      --name polite --method logprobs -o calibrated
  judge serve --profile calibrated/profile.json
  curl localhost:8010/v1/systemone -H "Authorization: Bearer $KEY" -d '{
      "model": "jev-latest", "state": {"email": "Dear Ann, ..."},
      "questions": {"polite": {"type": "noul"}}}'

A question that the profile knows, by its name or its words, is answered as judge validate answers
it; its answer has calibrated, sure, threshold, guarantee and labels under `x_judge`. Any other
question is answered by the same model without calibration. docs/explain/decision-models.md.
"""


@opt.with_settings(
    *("profile", "model", "cache", "cache_dir"),
    profile="Profile from `judge calibrate`.",
    model="Model of the profile. [default: the embedded local model]",
)
def command(
    settings: Settings,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server; 0 is a free one.")
    ] = 8010,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Any but 127.0.0.1 lets other machines ask, too.")
    ] = "127.0.0.1",
) -> None:
    """Answer typed questions over HTTP with the judges of a profile (POST /v1/systemone).

    It needs --profile. The key is JUDGE_SERVE_KEY; where that is not set, a new one is printed.
    """
    if settings.profile in (None, "none"):
        raise UsageError("judge serve needs --profile: what judge calibrate -o wrote")
    from judge.arguments import with_profile
    from judge.web.serve import serve

    settings, brings = with_profile(settings)
    for line in brings:
        print_message(line)
    user_key = os.environ.get(KEY, "").strip()
    key = user_key or token_urlsafe(24)

    def ready(address: str, name: str) -> None:
        print_message(f"{name} at {address}/v1/systemone; Ctrl-C ends it")
        if not user_key:
            print_message(f"key: {key}  (set {KEY} to choose one)")

    serve(settings, key, ready, host=host, port=port)
