"""instructor as its documentation uses it: a patched `AsyncOpenAI` and a pydantic response model.

`instructor.from_openai(AsyncOpenAI(...), mode=Mode.JSON_SCHEMA)` and then `create` with
`response_model`, which hands back the model, validated. Chosen, because they are the cheapest:

- everything that plain_openai.py chooses below it: aiohttp as transport, as many kept-alive
  connections as requests may be open, uvloop, no retries of the library's own;
- one patched client and one response model for all calls;
- no `context`, with which instructor would render each message as a Jinja template, no hooks;
- a single attempt (`max_retries=1`), because every judgement is to be one call;
- instructor's log stays off, its default.
"""

from __future__ import annotations

from typing import Any

import common

REQUIREMENTS: tuple[str, ...] = (
    "instructor==1.17.0",
    "openai[aiohttp]==3.3.0",
    "uvloop==0.23.0",
)
REPLY = common.TYPED_REPLY


async def _run(job: common.Job) -> int:
    import instructor

    model = common.reply_model()
    async with common.openai_client(job) as openai:
        client: Any = instructor.from_openai(openai, mode=instructor.Mode.JSON_SCHEMA)

        async def judge(prompt: common.Prompt) -> bool:
            reply = await client.chat.completions.create(
                model=common.MODEL,
                messages=common.messages(prompt),
                temperature=0,
                max_tokens=common.MAX_TOKENS,
                response_model=model,
                max_retries=1,
            )
            return [value.value for value in reply.values] == list(range(1, common.VALUES + 1))

        return await common.judged(job.prompts, job.concurrency, judge)


if __name__ == "__main__":
    common.run(_run)
