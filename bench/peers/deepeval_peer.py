"""DeepEval: `GEval` with its evaluation steps given, measured with `a_measure`.

With steps given GEval makes one call a test case; with a criterion it would first ask for steps.
Chosen, because they are the cheapest:

- a custom model (`DeepEvalBaseLLM`, as its guide has it) that shares one `AsyncOpenAI` with aiohttp
  as transport and asks for GEval's own schema; DeepEval's `OpenAIModel` makes a client for every
  call, and with GPT-4.1's name, for which GEval asks for log probabilities, costs half as much
  again;
- `a_measure` from as many workers as requests may be open, with uvloop; `evaluate` by default
  prints its results and writes a cache as well, and was not tried;
- one metric for every open request, used again;
- no progress display, telemetry off, no look at .env files.
"""

from __future__ import annotations

import os
from typing import Any

import common

REQUIREMENTS: tuple[str, ...] = (
    "deepeval==4.3.1",
    "openai[aiohttp]==3.54.0",
    "uvloop==0.23.0",
)
REPLY = common.message({"reason": common.GRADED, "score": 8.0})

_STEPS = [
    common.QUESTION,
    "Take points off for every value in 'input' that the story in 'actual output' does not show.",
]


async def _run(job: common.Job) -> int:
    from deepeval.metrics import GEval
    from deepeval.metrics.g_eval.schema import ReasonScore
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    async with common.openai_client(job) as client:

        class Judge(DeepEvalBaseLLM):  # type: ignore[misc]
            """A server of one's own, as DeepEval's guide to custom models has it."""

            def load_model(self) -> Any:
                return client

            def get_model_name(self) -> str:
                return common.MODEL

            def generate(self, prompt: str, schema: Any) -> Any:
                raise NotImplementedError("everything here is asynchronous")

            async def a_generate(self, prompt: str, schema: Any) -> Any:
                answer = await client.chat.completions.create(
                    model=common.MODEL,
                    messages=[{"role": "user", "content": prompt}],
                    temperature=0,
                    max_tokens=common.MAX_TOKENS,
                    response_format=formats[schema],
                )
                return schema.model_validate_json(answer.choices[0].message.content)

        schema = {"name": "ReasonScore", "schema": ReasonScore.model_json_schema()}
        formats = {ReasonScore: {"type": "json_schema", "json_schema": schema}}
        model = Judge()
        # A metric keeps the verdict of its last measurement, so each open request needs its own.
        idle = [
            GEval(
                name="Values reflected",
                evaluation_steps=_STEPS,
                evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
                model=model,
            )
            for _ in range(job.concurrency)
        ]

        async def judge(prompt: common.Prompt) -> bool:
            metric = idle.pop()
            await metric.a_measure(
                LLMTestCase(input=prompt.listed(), actual_output=prompt.story),
                _show_indicator=False,
            )
            valid = metric.score == 0.8 and bool(metric.reason)
            idle.append(metric)
            return valid

        return await common.judged(job.prompts, job.concurrency, judge)


def main() -> None:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
    os.environ["DEEPEVAL_DISABLE_DOTENV"] = "1"

    common.run(_run)


if __name__ == "__main__":
    main()
