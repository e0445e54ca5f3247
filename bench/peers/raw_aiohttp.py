"""aiohttp and nothing else: what a judgement costs when no library stands around the request.

One `ClientSession` posts every request. Chosen, because they are the cheapest:

- uvloop in place of asyncio's own loop (no difference that could be told from the noise);
- one connector with as many kept-alive connections as requests may be open, and no cookie jar;
- orjson in place of json for the request, for the HTTP body and for the content inside it;
- headers made once, and no decompression asked for.
"""

from __future__ import annotations

import common

REQUIREMENTS: tuple[str, ...] = ("aiohttp==3.14.5", "orjson==3.13.0", "uvloop==0.23.0")
REPLY = common.TYPED_REPLY


async def _run(job: common.Job) -> int:
    import aiohttp
    import orjson

    url = f"{job.url}/chat/completions"

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=job.concurrency),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=common.HEADERS,
    ) as session:

        async def judge(prompt: common.Prompt) -> bool:
            async with session.post(url, data=orjson.dumps(common.body(prompt))) as answer:
                answer.raise_for_status()
                return common.answered(await answer.read())

        return await common.judged(job.prompts, job.concurrency, judge)


if __name__ == "__main__":
    common.run(_run)
