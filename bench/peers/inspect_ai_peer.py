"""Inspect: `eval` of a `Task` whose samples are stories and whose scorer is `model_graded_qa`.

The story stands for what a model under test wrote: the solver sets it as the output, without a
call, and the only call is the grader's. Chosen, because they are the cheapest:

- the grader as `openai-api/...` with aiohttp as transport and as many kept-alive connections as
  requests may be open; `max_connections` and `max_samples` are that number too;
- uvloop as policy, which Inspect's own event loop then follows;
- no display, no score shown while running, no realtime log, no record of raw API calls, nothing
  but critical messages logged, no control server, no agent server, no checkpoints; the log is
  flushed once, at the end, and not read back;
- `log_samples=False`: the log file keeps the run and its metrics but no samples, and a scorer
  around `model_graded_qa` collects the verdicts with their reasons. With samples in the log a
  judgement costs about twice as much;
- no cache (off by default) and no retries.

Calling `generate` with a response schema and parsing the JSON did not cost less. Neither uvloop nor
aiohttp made a difference here that could be told from the noise.
"""

from __future__ import annotations

import tempfile
from typing import Any

import common

REQUIREMENTS: tuple[str, ...] = ("inspect_ai==0.3.285", "openai[aiohttp]==3.54.0", "uvloop==0.23.0")
REPLY = common.message(common.GRADED + "\n\nGRADE: C")


def _run(job: common.Job) -> int:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import Score, Target, accuracy, model_graded_qa, scorer
    from inspect_ai.solver import Generate, TaskState, solver

    verdicts: list[Score] = []

    @solver  # type: ignore[untyped-decorator]
    def written() -> Any:
        # Sets the story as the answer to grade; calling `generate` would be a second request.
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.output = ModelOutput.from_content(common.MODEL, state.metadata["story"])
            return state

        return solve

    @scorer(metrics=[accuracy()])  # type: ignore[untyped-decorator]
    def graded(model: Any) -> Any:
        grade = model_graded_qa(model=model)

        async def score(state: TaskState, target: Target) -> Any:
            verdict = await grade(state, target)
            if verdict is not None:
                verdicts.append(verdict)
            return verdict

        return score

    grader = get_model(
        f"openai-api/canned/{common.MODEL}",
        base_url=job.url,
        api_key=common.API_KEY,
        max_retries=0,
        http_client=common.openai_transport(job),
    )
    task = Task(
        dataset=MemoryDataset(
            [
                Sample(input=common.QUESTION, target=p.listed(), metadata={"story": p.story})
                for p in job.prompts
            ]
        ),
        solver=written(),
        scorer=graded(grader),
    )
    with tempfile.TemporaryDirectory() as folder:
        eval(
            task,
            model=grader,
            max_connections=job.concurrency,
            max_samples=job.concurrency,
            temperature=0,
            max_tokens=common.MAX_TOKENS,
            max_retries=0,
            display="none",
            log_dir=folder,
            log_format="eval",
            log_level="critical",
            log_level_transcript="critical",
            log_samples=False,
            log_realtime=False,
            log_model_api=False,
            log_images=False,
            log_header_only=True,
            log_buffer=len(job.prompts) + 1,
            score_display=False,
            acp_server=False,
            ctl_server=False,
            checkpoint=False,
        )
    return sum(verdict.value == "C" and bool(verdict.explanation) for verdict in verdicts)


def main() -> None:
    import uvloop

    uvloop.install()
    job = common.job()
    common.finish(_run(job), len(job.prompts))


if __name__ == "__main__":
    main()
