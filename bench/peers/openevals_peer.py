"""openevals: `create_async_llm_as_judge` with a template of one's own, one evaluator for all calls.

The verdict is openevals' usual one, `score` as a boolean after the `reasoning`. Chosen, because
they are the cheapest:

- an `AsyncOpenAI` client as `judge`, which openevals calls itself; with a LangChain chat model in
  its place every call goes through LangChain's runnables as well;
- everything that plain_openai.py chooses below it: aiohttp as transport, as many kept-alive
  connections as requests may be open, uvloop, no retries;
- LangSmith's tracing off, which would record and send every call.
"""

from __future__ import annotations

import os

import common

REQUIREMENTS: tuple[str, ...] = (
    "openevals==0.2.2",
    "openai[aiohttp]==3.54.0",
    "uvloop==0.23.0",
)
REPLY = common.message(
    {"reasoning": f"{common.GRADED} Thus, the score should be: true.", "score": True}
)

_PROMPT = f"""{common.QUESTION}

<story>
{{outputs}}
</story>

<values>
{{inputs}}
</values>
"""


async def _run(job: common.Job) -> int:
    from openevals.llm import create_async_llm_as_judge

    async with common.openai_client(job) as client:
        evaluator = create_async_llm_as_judge(
            prompt=_PROMPT, feedback_key="reflected", judge=client, model=common.MODEL
        )

        async def judge(prompt: common.Prompt) -> bool:
            verdict = await evaluator(inputs=prompt.listed(), outputs=prompt.story)
            return verdict["score"] is True and bool(verdict["comment"])

        return await common.judged(job.prompts, job.concurrency, judge)


def main() -> None:
    os.environ["LANGSMITH_TRACING"] = "false"

    common.run(_run)


if __name__ == "__main__":
    main()
