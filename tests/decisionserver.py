"""A server of decision models on 127.0.0.1: it answers as a test says, wrongly if told to.

    with DecisionServer(lambda state, question: 0.9) as server:
        ...  # SYSTEMONE_BASE_URL=server.url

It speaks TypeSafe's System One, and OpenAI's Decisions where the questions come as a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from loopback import Asked, Exchange, Scheduled, response

Chances = Callable[[Mapping[str, Any], Mapping[str, Any]], float | Mapping[str, float]]
"""From state and question to P(yes), or to the probability of each choice (of a score: level)."""

Fault = Callable[[dict[str, Any]], Any]
"""What becomes of a reply: another body, or (status, body) or (status, body, headers)."""


class DecisionServer(Scheduled):
    """Answers by `chances`; `fault` spoils the replies to all but judge's own small question."""

    def __init__(self, chances: Chances, *, model: str = "made-1.0", fault: Fault | None = None):
        super().__init__(lambda asked: self._deed)
        self.chances, self.model, self.fault = chances, model, fault

    @property
    def asked(self) -> list[Asked]:
        """The calls that were no small question of judge's own."""
        return [call for call in self.calls if "Water is wet" not in json.dumps(call.body)]

    async def _deed(self, exchange: Exchange) -> None:
        body = exchange.asked.body
        reply: Any = self.reply(body)
        if self.fault and "Water is wet" not in json.dumps(body):
            reply = self.fault(reply)
        status, content, headers = (
            (*reply, {})[:3] if isinstance(reply, tuple) else (200, reply, {})
        )
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        exchange.keep = True
        await exchange.send(response(status, data, headers=headers))

    def reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A right reply."""
        usage = {"input_tokens": 100, "output_tokens": 0}
        if isinstance(body["questions"], list):
            state = json.loads(body["input"])
            answers: Any = [self._listed(state, asked) for asked in body["questions"]]
        else:
            questions = body["questions"].items()
            answers = {name: self._mapped(body["state"], asked) for name, asked in questions}
        return {"model": self.model, "answers": answers, "usage": usage}

    def _mapped(self, state: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        kind, criteria = asked["type"], asked.get("criteria")
        chances = self._chances(state, asked)
        if kind == "noul":
            return {"type": kind, "noul": chances}
        shares = {str(n): chances[str(n)] for n in range(len(criteria))} if kind == "score" else {}
        answer = {"type": kind, "probabilities": shares or chances, "confidence": 0.5}
        if kind == "score":
            mean = sum(int(level) * share for level, share in shares.items())
            return {**answer, "score": mean, "legend": dict(enumerate(criteria))}
        return {**answer, "choice": max(chances, key=chances.__getitem__)}

    def _listed(self, state: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        kind, name, chances = asked["type"], asked["name"], self._chances(state, asked)
        if kind == "predicate":
            return {"type": kind, "name": name, "probability": chances}
        rows = [{"value": value, "probability": share} for value, share in chances.items()]
        answer = {"type": kind, "name": name, "probabilities": rows}
        if kind == "score":
            for row in rows:
                row["value"] = int(row["value"])
            return {**answer, "score": sum(row["value"] * row["probability"] for row in rows)}
        return {**answer, "choice": max(chances, key=chances.__getitem__)}

    def _chances(self, state: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
        return 0.99 if state.get("text") == "Water is wet." else self.chances(state, asked)


def only(reply: dict[str, Any]) -> dict[str, Any]:
    """The one answer of a reply."""
    answers = reply["answers"]
    answer: dict[str, Any] = answers[0] if isinstance(answers, list) else answers["question"]
    return answer


def spoilt(**changes: Any) -> Fault:
    """A fault that changes keys of the one answer; None takes a key away."""

    def fault(reply: dict[str, Any]) -> dict[str, Any]:
        answer = only(reply)
        answer.update(changes)
        for name in [name for name, content in changes.items() if content is None]:
            del answer[name]
        return reply

    return fault
