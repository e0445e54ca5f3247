"""`shout:MODEL`: a server that answers {"prompt": ...} with {"text": ...}.

The package's pyproject.toml: [project.entry-points."judge.backends"] shout = "backend:Shout"
"""

import os
from collections.abc import Mapping

import aiohttp

from judge.backends.base import Backend, Call, Completion, Mode
from judge.backends.chat import with_schema_in_words
from judge.errors import ServerFault


class Shout(Backend):
    modes = (Mode.JSON,)  # this server takes no schema: JSON is asked for in words
    seeded = False  # it takes no seed either

    def __init__(self, name: str) -> None:
        self._name, self._url = name, os.environ["SHOUT_URL"]

    def identity(self) -> Mapping[str, str]:
        return {"provider": "shout", "model": self._name, "server": self._url}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        messages = with_schema_in_words(call) if call.schema else call.messages
        prompt = "\n\n".join(message["content"] for message in messages)
        try:
            async with aiohttp.ClientSession(raise_for_status=True) as session:
                answer = await session.post(self._url, json={"prompt": prompt})
                return Completion(text=(await answer.json())["text"])
        except aiohttp.ClientError as error:
            raise ServerFault(str(error)) from error
