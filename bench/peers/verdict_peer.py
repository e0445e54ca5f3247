"""Verdict: a `Pipeline` of one `CategoricalJudgeUnit` with an explanation, run over the stories.

Verdict calls through LiteLLM and instructor in threads; it has no asynchronous way. Chosen, because
they are the cheapest:

- one `run_from_list` for all stories with as many threads as requests may be open, not a run for
  each;
- Verdict's rate limits off (five requests a minute by default), one attempt for each story;
- a `vLLMModel`, Verdict's name for a server of one's own; LiteLLM keeps its connections alive;
- no display, no tracer, no log (`VERDICT_NO_LOG`), and LiteLLM's own price list in place of one
  fetched from the network when it is imported.

The tokens of each prompt and reply are counted whatever one chooses; Verdict has no switch for it.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import common

REQUIREMENTS: tuple[str, ...] = ("verdict==0.2.7",)
_ARGUMENTS = json.dumps({"explanation": common.GRADED, "choice": "yes"})
_FUNCTION = {"name": "InferredSchema", "arguments": _ARGUMENTS}
REPLY = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": _FUNCTION}],
}

_PROMPT = f"""{common.QUESTION}

Story: {{source.story}}

Values: {{source.values}}

Answer yes or no.
"""


def _run(job: common.Job) -> int:
    from verdict import Pipeline
    from verdict.common.judge import CategoricalJudgeUnit
    from verdict.model import vLLMModel
    from verdict.scale import DiscreteScale
    from verdict.schema import Schema
    from verdict.util import ratelimit

    ratelimit.disable()
    model: Any = vLLMModel(common.MODEL, api_base=job.url, api_key=common.API_KEY)
    pipeline = Pipeline("bench") >> CategoricalJudgeUnit(
        categories=DiscreteScale(["yes", "no"]), explanation=True
    ).prompt(_PROMPT).via(model, retries=1, temperature=0, max_tokens=common.MAX_TOKENS)
    stories = [Schema.of(story=p.story, values=p.listed()) for p in job.prompts]
    verdicts, _ = pipeline.run_from_list(stories, max_workers=job.concurrency)
    (choices,) = (verdicts[name] for name in verdicts.columns if name.endswith("_choice"))
    (reasons,) = (verdicts[name] for name in verdicts.columns if name.endswith("_explanation"))
    return sum(
        choice == "yes" and bool(reason) for choice, reason in zip(choices, reasons, strict=True)
    )


def main() -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["VERDICT_NO_LOG"] = "1"
    job = common.job()
    # Verdict makes a folder where it is imported.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        valid = _run(job)
    common.finish(valid, len(job.prompts))


if __name__ == "__main__":
    main()
