"""What a run may spend, and what its calls cost."""

from __future__ import annotations

from dataclasses import dataclass

from judge.errors import BackendError
from judge.verdict import Usage


class BudgetReached(BackendError):
    """The run's `--max-calls` or `--max-cost` is used up; no further call is made."""

    kind = "budget"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million input and output tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@dataclass(slots=True)
class Budget:
    """Counts calls that were paid for in this run and stops them at a limit.

    A call is counted when it starts, so calls under way never exceed `max_calls`; its cost is known
    when it ends, so `max_cost` (USD) can be exceeded by the calls then under way.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0

    def take(self) -> None:
        """Count one call.

        Raises:
            BudgetReached: the limit leaves no room for it.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetReached(f"--max-calls {self.max_calls} is reached")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetReached(f"--max-cost {self.max_cost} USD is reached")
        self.calls += 1

    def spent(self, usage: Usage) -> None:
        self.cost += usage.cost_usd or 0.0
