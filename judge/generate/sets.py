"""The sets that can be generated: those installed, and recipes."""

from __future__ import annotations

from judge import plugins
from judge.errors import UsageError
from judge.generate.generator import Generator
from judge.generate.recipe import load_recipe

GENERATORS = "judge.generators"
"""The entry-point group of generators."""


def generator_names() -> tuple[str, ...]:
    """The generators installed, sorted by name."""
    return plugins.names(GENERATORS)


def load_generator(name: str) -> Generator:
    """The generator with this name, or that of a recipe (a YAML file); raises UsageError."""
    if name.endswith((".yaml", ".yml")):
        return load_recipe(name)
    generator: Generator | None = plugins.load(GENERATORS, name)
    if generator is None:
        names = ", ".join(generator_names()) or "none"
        raise UsageError(f"no set is called {name!r}; there are {names}, or name a FILE.yaml")
    return generator
