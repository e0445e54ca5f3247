"""The tables of judge.toml: servers, prices, and the models of steps."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SECRET_NAME = re.compile(r"key|token|secret|password|credential|authorization", re.IGNORECASE)
"""Names whose values must not be in a file."""

_SECRET_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)")
_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
_HeaderText = Annotated[str, Field(pattern=r"^[\x20-\x7e]*$")]


_OWN_HOSTS = {"google_genai": "generativelanguage.googleapis.com"}
"""Providers' hosts; another's is `api.PROVIDER.com`."""


class Price(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


class ListPrice(Price):
    """A provider's list price, with the date on which it was read, and the page."""

    date: datetime.date
    source: str


def price_of(spec: str, prices: Mapping[str, Price], address: str | None) -> Price | None:
    """The price of a model: the user's, else its provider's list price (prices.toml), else None.

    List prices do not apply to an address other than the provider's own, nor to batches, for which
    callers must not ask. `address` is where calls go (None: to the provider, unless its
    `..._BASE_URL` is set).
    """
    name = spec.removeprefix("langchain:")
    provider = name.partition(":")[0]
    address = address or os.environ.get(f"{provider.upper()}_BASE_URL", "").strip()
    own = re.escape(_OWN_HOSTS.get(provider, f"api.{provider}.com"))
    elsewhere = address and not re.match(rf"https?://([^/?#]*[.@])?{own}([:/?#]|$)", address)
    return prices.get(spec) if spec in prices or elsewhere else _listed().get(name)


def priced_models(provider: str) -> list[str]:
    """The names of a provider's models with a list price."""
    begin = f"{provider}:"
    return [spec.removeprefix(begin) for spec in _listed() if spec.startswith(begin)]


@cache
def _listed() -> Mapping[str, ListPrice]:
    text = (resources.files("judge") / "prices.toml").read_text("utf-8")
    return {
        spec: ListPrice(input=pair[0], output=pair[1], date=entry["date"], source=entry["source"])
        for entry in tomllib.loads(text)["list"]
        for spec, pair in entry["models"].items()
    }


class Server(BaseModel):
    """A server: its address, its protocol, the variable that holds its key, and options.

    The variable's name ends in KEY, TOKEN, SECRET or PASSWORD, because the values of such variables
    are redacted in all output. Without `key_env` no key is sent. `key_header` is the header for the
    key; `headers` and `query` are sent with every request, `omit` names parameters that are not;
    `mode` is the only way in which JSON is asked for.
    """

    model_config = ConfigDict(extra="forbid")
    url: str
    protocol: Literal["openai", "systemone", "decisions"] = "openai"
    key_env: str | None = None
    key_header: _HeaderName | None = None
    headers: Mapping[_HeaderName, _HeaderText] = {}
    query: Mapping[str, str] = {}
    omit: tuple[Literal["temperature", "seed", "max_tokens", "strict", "system"], ...] = ()
    mode: Literal["json_schema", "tools", "json", "words"] | None = None

    @field_validator("key_env")
    @classmethod
    def _of_a_secret(cls, name: str | None) -> str | None:
        if name is not None and not _SECRET_VARIABLE.fullmatch(name):
            # Without the text, which may be the key itself.
            raise ValueError(
                "name a variable that ends in KEY, TOKEN, SECRET or PASSWORD, so that its value "
                "is redacted"
            )
        return name

    @model_validator(mode="after")
    def _chat_alone(self) -> Self:
        for name in ("omit", "mode"):
            if self.protocol != "openai" and name in self.model_fields_set:
                raise ValueError(f"{name}: only for protocol openai; {self.protocol} has none")
        return self

    @field_validator("headers", "query")
    @classmethod
    def _without_keys(cls, headers: Mapping[str, str]) -> Mapping[str, str]:
        for name in headers:
            if SECRET_NAME.search(name):
                raise ValueError(
                    f"{name}: keys are read from the environment alone: name its variable in "
                    "key_env, and the header in key_header"
                )
        return headers

    @property
    def identity(self) -> str:
        """The headers and the query, on which replies depend."""
        parts = {**self.headers, **self.query}
        return "; ".join(f"{name}: {text}" for name, text in sorted(parts.items()))


class StepModel(BaseModel):
    """The model and the temperature of one step; None: those of other steps of its kind."""

    model_config = ConfigDict(extra="forbid")
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, content: object) -> object:
        """`insertion = "openai:gpt-4o"` for `insertion = {model = "openai:gpt-4o"}`."""
        return {"model": content} if isinstance(content, str) else content


TABLES: Mapping[str, type[BaseModel]] = {
    "model_for": StepModel,
    "prices": Price,
    "servers": Server,
}
"""The type of the entries of each setting that is a table."""
