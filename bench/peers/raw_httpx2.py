"""httpx2 and nothing else: the HTTP client that the OpenAI library stands on.

One `AsyncClient` posts every request. Chosen, because they are the cheapest:

- uvloop in place of asyncio's own loop;
- as many kept-alive connections as requests may be open, so that none is opened twice;
- no look at proxies in the environment, no TLS context (the server speaks plain HTTP);
- orjson in place of json for the request, for the HTTP body and for the content inside it;
- the URL and the headers made once, and no decompression asked for.
"""

from __future__ import annotations

import common

REQUIREMENTS: tuple[str, ...] = ("httpx2==2.16.2", "orjson==3.13.0", "uvloop==0.23.0")
REPLY = common.TYPED_REPLY


async def _run(job: common.Job) -> int:
    import httpx2
    import orjson

    url = httpx2.URL(f"{job.url}/chat/completions")
    async with httpx2.AsyncClient(
        headers=common.HEADERS,
        limits=httpx2.Limits(
            max_connections=job.concurrency, max_keepalive_connections=job.concurrency
        ),
        timeout=None,
        trust_env=False,
        verify=False,
    ) as client:

        async def judge(prompt: common.Prompt) -> bool:
            answer = await client.post(url, content=orjson.dumps(common.body(prompt)))
            answer.raise_for_status()
            return common.answered(answer.content)

        return await common.judged(job.prompts, job.concurrency, judge)


if __name__ == "__main__":
    common.run(_run)
