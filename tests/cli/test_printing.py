"""Tables on a terminal: they fit its width, and no word or number is cut."""

from __future__ import annotations

import ast
import io
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import judge
from judge.cli.printing import (
    Tables,
    print_lines,
    print_message,
    print_output,
    print_table,
    shortened,
)
from judge.cli.progress import steps

WORD = st.text("abcdefgh漢", min_size=1, max_size=14)
WORDS = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
NUMBER = st.sampled_from(["", "7", "0.71 (0.65 to 0.77)", "0.71 (0.65 to 0.77), 30 of 40"])


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(1, 12))
def test_a_table_of_any_content_fits_and_breaks_no_word(data: st.DataObject, many: int) -> None:
    heads = ["judge", *(f"head {n}" for n in range(many)), "about"]
    cells = st.tuples(WORDS, *[NUMBER] * many, WORDS)
    rows = data.draw(st.lists(cells, min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed := io.StringIO())
        print_table(heads, rows)
    lines = printed.getvalue().splitlines()
    zeros = {n for n, column in enumerate(zip(*rows, strict=True)) if not any(column)}
    heads = [head for n, head in enumerate(heads) if n not in zeros]
    assert all(cell_len(line.rstrip()) <= 80 for line in lines)
    shown = "\n".join(lines)
    for row in rows:
        for cell in row[1:-1]:
            assert cell in shown, "numbers stay on one line"
        assert all(word in shown for word in (*row[0].split(), *row[-1].split()))
    assert all(head.split()[-1] in shown for head in heads)


def test_columns_that_have_no_room_come_below_with_their_labels(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("relevance", "x" * 30, "y" * 30, "z" * 30)]
    print_table(("check", "one", "two", "three"), rows, title="A title")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "A title"
    assert [line for line in lines if line.startswith("relevance")] == [
        f"relevance  {'x' * 30}  {'y' * 30}",
        f"relevance  {'z' * 30}",
    ]


def test_labels_are_cut_off_further_where_figures_have_no_room(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [(f"{'check' * 9} 礼儀", f"lab:{'模型' * 20}", "passes 6 of 10 (60.0%)", "123")]
    print_table(("check", "judge", "votes", "of"), rows, labels=2)
    out = capsys.readouterr().out
    assert all(cell_len(line) <= 80 for line in out.splitlines())
    assert all(word in out for word in ("checkcheck", "礼儀", "lab:模型模型", "…", "123"))
    assert all(word in out.split() for word in ("passes", "(60.0%)")), "figures are whole"


@pytest.mark.parametrize("every", [False, True])
def test_the_headline_comes_first_and_all_else_on_demand(
    capsys: pytest.CaptureFixture[str], every: bool
) -> None:
    shown = Tables(all_tables=every)
    heads, row = ("check", "one", "none", "two", "three"), ("a", "x" * 30, "0", "y" * 30, "z" * 30)
    shown.add(heads, [row], headline=True, title="First", notes=["said once"])
    address = "https://example.org/" + "page/" * 20
    shown.add(("site", "n"), [(address, "1")], headline=False, title="Second", notes=["said once"])
    shown.end()
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines()) and "none" not in out
    assert "First" in out and "x" * 30 in out and out.count("said once") == 1
    assert ("z" * 30 in out) == ("Second" in out) == (f"{address[:39]}…" in out) == every
    assert ("--all shows more: 1 table, 1 column" in out) == (not every)


def test_the_bar_stands_at_60_columns_and_the_time_before_the_first_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    with steps("records") as told:
        for begun in (0.0, 1.0, 2.0):
            told("relevance, scripted:some-model.yaml", 0, 2_000, "detail " * 20, begun)
            time.sleep(0.02)
        print_message("stopping", new_line=True)  # below the bar, where a terminal shows ^C
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).rstrip()
    last = shown.splitlines()[-1]
    assert re.search(r"\r\n.*\rjudge: stopping\n", shown)
    assert re.search("[━╸╺]{16} 0/2,000 0:0[0-9]:[0-9]{2} det", last) and len(last) <= 60, last


def test_text_of_records_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("check", "n"), [("\x1b[2Jred \u202eabc [bold]", "1")])
    for printed in (print_message, print_output, lambda text: print_lines([text])):
        # Not one of the escapes that typer takes out where there is no terminal.
        printed("\x1b]0;title\u202e")
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\u202e" not in out + err
    assert "\\u001b[2Jred" in out and "\\u202eabc [bold]" in out
    assert shortened("a\n b" * 9, 3) == "a b…"


def test_long_lines_are_folded_and_words_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(["  " + "word " * 30 + "x" * 90, "", "short"])
    *folded, long, empty, short = capsys.readouterr().out.splitlines()
    assert len(folded) == 2 and all(len(line) <= 80 for line in folded)
    assert (folded[1][:8], long, empty, short) == ("    word", "    " + "x" * 90, "", "short")


def test_verdicts_have_colours_on_a_terminal_unless_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for unwanted, coloured in (("", True), ("1", False)):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdout", screen)
        monkeypatch.setenv("NO_COLOR", unwanted)
        print_table(("check", "pass", "fail"), [("polite", "4", "2")])
        assert ("\x1b[32mpass" in screen.getvalue()) == coloured


@pytest.mark.slow
def test_percent_is_written_in_one_form() -> None:
    """Texts that are printed say 95%; docstrings and comments are not printed."""
    spaced: list[str] = []
    for path in Path(judge.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        nodes = [*ast.walk(tree)]
        docs = {node.value for node in nodes if isinstance(node, ast.Expr)}
        texts = (n for n in nodes if isinstance(n, ast.Constant) and n not in docs)
        spaced += [
            f"{path.name}: {n.value}" for n in texts if re.search(r"\d %(?!\d)", str(n.value))
        ]
    assert spaced == []
