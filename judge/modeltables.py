"""What judge.toml says of models in tables: prices, servers, models of single steps."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Warmth = Field(ge=0, le=2)


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


class Server(BaseModel):
    """A server with OpenAI's protocol: its address, and the variable that holds its key.

    The variable's name ends in KEY, TOKEN, SECRET or PASSWORD, because the values of such variables
    are redacted in all that is written. Without `key_env` no key is sent.
    """

    model_config = ConfigDict(extra="forbid")
    url: str
    key_env: Annotated[
        str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)$")
    ] = None


class StepModel(BaseModel):
    """The model and the temperature of one step; None: as for the other steps of its kind."""

    model_config = ConfigDict(extra="forbid")
    model: str | None = None
    temperature: Annotated[float | None, Warmth] = None

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, given: object) -> object:
        """`insertion = "openai:gpt-4o"` for `insertion = {model = "openai:gpt-4o"}`."""
        return {"model": given} if isinstance(given, str) else given
