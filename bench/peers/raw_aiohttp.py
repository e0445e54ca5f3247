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
ROUTE = [("", common.TYPED_REPLY)]


async def _run(job: common.Job) -> int:
    import aiohttp
    import orjson

    url = f"{job.url}/chat/completions"

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=job.concurrency),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={
            "Authorization": f"Bearer {common.API_KEY}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        },
    ) as session:

        async def judge(prompt: common.Prompt) -> bool:
            async with session.post(url, data=orjson.dumps(common.body(prompt))) as answer:
                answer.raise_for_status()
                reply = orjson.loads(await answer.read())
            return common.complete(orjson.loads(reply["choices"][0]["message"]["content"]))

        return await common.judged(job.prompts, job.concurrency, judge)


def main() -> None:
    import uvloop

    job = common.job()
    common.finish(uvloop.run(_run(job)), len(job.prompts))


if __name__ == "__main__":
    main()
