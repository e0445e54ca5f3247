"""Layouts: what prompts share is there once, and every path spells its prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judge.inference.prefix import LEAST_SHARED, Layout, Prompt, arrange, common

BEGINNINGS = st.sampled_from([list(range(n)) for n in (0, 5, LEAST_SHARED, 40)])
PROMPTS = st.lists(
    st.tuples(
        BEGINNINGS,
        st.lists(st.integers(0, 2), min_size=0, max_size=3),
        st.sampled_from([[7] * 20, [8] * 20, []]),
        st.lists(st.integers(0, 3), min_size=1, max_size=6),
    ).map(lambda parts: [token for part in parts for token in part]),
    min_size=1,
    max_size=12,
)


def spelt(layout: Layout, path: tuple[tuple[int, int], ...], held: list[int]) -> list[int]:
    rows = [*held, *layout.tokens]
    return [rows[row] for begin, end in path for row in range(begin, end)]


@given(PROMPTS)
def test_every_path_spells_its_prompt_and_ends_at_its_end(prompts: list[list[int]]) -> None:
    layout = arrange([Prompt(tokens) for tokens in prompts])
    for tokens, path, end in zip(prompts, layout.paths, layout.ends, strict=True):
        assert spelt(layout, path, []) == tokens
        assert path[-1][1] - 1 == end
        assert layout.positions[end] == len(tokens) - 1


@given(PROMPTS, st.integers(1, 30))
def test_held_beginnings_are_not_among_the_new_tokens(prompts: list[list[int]], at: int) -> None:
    held = prompts[0][:-1][:at]
    covered = [min(common(held, tokens), len(tokens) - 1) for tokens in prompts]
    layout = arrange([Prompt(t, c, 0) for t, c in zip(prompts, covered, strict=True)])
    kept = held[: layout.held_rows]
    for tokens, path in zip(prompts, layout.paths, strict=True):
        assert spelt(layout, path, kept) == tokens


def test_a_shared_beginning_is_evaluated_once_at_every_level() -> None:
    system, stories = list(range(30)), ([100] * 50, [200] * 50)
    prompts = [[*system, *story, 300 + n, 400] for story in stories for n in range(5)]
    layout = arrange([Prompt(tokens) for tokens in prompts])
    assert len(layout.tokens) == 30 + 2 * 50 + 10 * 2
    assert sorted(segment.before for segment in layout.segments) == [0, 30, 30, *[80] * 10]


def test_a_short_common_beginning_is_not_worth_a_segment() -> None:
    prompts = [[*range(LEAST_SHARED - 1), 50], [*range(LEAST_SHARED - 1), 60]]
    assert len(arrange([Prompt(tokens) for tokens in prompts]).segments) == 2


def test_the_same_prompt_is_evaluated_once() -> None:
    layout = arrange([Prompt([1, 2, 3]), Prompt([1, 2, 3])])
    assert layout.tokens == [1, 2, 3]
    assert layout.ends == [2, 2]


def test_without_sharing_every_prompt_is_whole() -> None:
    layout = arrange([Prompt([1, 2, 3]), Prompt([1, 2, 3])], share=False)
    assert layout.tokens == [1, 2, 3] * 2
    assert not layout.shares
