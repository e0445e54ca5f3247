"""The OpenAI library: `AsyncOpenAI(...).chat.completions.create` with a JSON schema to follow.

The content is read with json and checked by hand. Chosen, because they are the cheapest:

- one client, with as many kept-alive connections as requests may be open;
- `DefaultAioHttpClient`, which the library's README names for many requests at once, in place of
  httpx2's own transport;
- uvloop in place of asyncio's own loop (no difference that could be told from the noise);
- `create` and not `parse`, which would make a pydantic model of the content as well;
- no retries, because every judgement is to be one call; the library's log stays off, its default.
"""

from __future__ import annotations

import json

import common

REQUIREMENTS: tuple[str, ...] = ("openai[aiohttp]==3.54.0", "uvloop==0.23.0")
REPLY = common.TYPED_REPLY


async def _run(job: common.Job) -> int:
    async with common.openai_client(job) as client:

        async def judge(prompt: common.Prompt) -> bool:
            answer = await client.chat.completions.create(**common.body(prompt))
            return common.complete(json.loads(answer.choices[0].message.content or ""))

        return await common.judged(job.prompts, job.concurrency, judge)


if __name__ == "__main__":
    common.run(_run)
