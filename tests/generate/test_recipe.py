"""`judge generate FILE.yaml`: records of one's own, written, checked, kept or lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from judge.generate.diversity import Diversity
from judge.records.lines import written
from tests.cli.conftest import lines
from tests.cli.typed import Typed
from tests.loopback import Answer, Asked, Loopback, says

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GO = ("generate", "reply.yaml", "mails.csv", "-m", "scripted:writer.yaml")


@pytest.fixture
def mails(typed: Typed) -> Typed:
    """The documentation's recipe, its script and its e-mails."""
    for path in (EXAMPLES / "mails.csv", *(EXAMPLES / "generate").iterdir()):
        shutil.copy(path, typed.folder)
    return typed


def test_what_does_not_pass_is_written_anew_and_what_never_does_is_told_with_its_stage(
    mails: Typed,
) -> None:
    code, out, err = mails.text(*GO, "-o", "kept.jsonl", "--summary", "sums.json")
    assert (code, out) == (0, "")
    kept, lost = lines(mails.read("kept.jsonl")), lines(mails.read("kept.jsonl.discarded.jsonl"))
    # mail-2 was answered rudely first; the reason of the judge brought a better answer.
    assert [line["lineage"]["parent"] for line in kept] == ["mail-1", "mail-2", "mail-5", "mail-6"]
    rounds = [[c["verdict"] for c in line["judge"]["checks"]] for line in kept]
    assert rounds == [["pass"], ["fail", "pass"], ["pass"], ["pass"]]
    assert kept[1]["reply"].startswith("Thank you") and kept[1]["judge"]["verdict"] == "pass"
    first = {"set": "reply", "seed": 0, "index": 1, "parent": "mail-1"}
    mark = kept[0]["judge"]["fingerprint"]
    assert kept[0]["lineage"] == {**first, "model": "scripted:writer.yaml", "fingerprint": mark}
    came = [
        (line["id"], line["judge"]["generated"]["stage"], line["judge"]["generated"]["cause"])
        for line in lost
    ]
    assert came == [("reply-0-3", "reply_to_mail", "refused"), ("reply-0-4", "friendly", "fail")]
    # Three rewrites by default: every loop ends.
    assert [check["round"] for check in lost[1]["judge"]["checks"]] == [1, 2, 3, 4]
    assert "cannot reply to private letters" in lost[0]["judge"]["reason"]
    funnel = json.loads(mails.read("sums.json"))["funnel"]
    assert (funnel["drafts"], funnel["kept"]) == (6, 4)
    assert [(s["stage"], s["in"], s["out"], s["lost"]) for s in funnel["stages"]] == [
        ("reply_to_mail", 6, 5, {"refused": 1}),
        ("friendly", 5, 4, {"fail": 1}),
        ("similarity", 4, 4, {}),
    ]
    different = json.loads(mails.read("sums.json"))["diversity"]
    assert (different["records"], different["near_duplicates"]) == (4, 2)
    assert {n: round(share, 2) for n, share in different["distinct"].items()} == {
        "1": 0.24,
        "2": 0.28,
        "3": 0.3,
    }
    assert "distinct-1 0.24, distinct-2 0.28, distinct-3 0.30" in err
    assert "4 of 6 drafts kept" in err and "country: 2 different; JP 2, PE 2" in err
    assert max(map(len, err.splitlines())) <= 80


def test_what_is_written_goes_through_validate_without_its_lineage_being_shown(
    mails: Typed,
) -> None:
    mails(*GO, "-o", "kept.jsonl")
    said = {"reason": "It thanks.", "answer": "yes", "quote": None}
    judge = mails.script("judge.yaml", [{"when": {"lacks": "writer.yaml"}, "reply": said}])
    ask = ("--ask", "Is it kind?", "-m", judge)
    code, out, _ = mails.text("validate", "kept.jsonl", *ask)
    assert code == 0
    assert [line["lineage"]["parent"] for line in lines(out.encode())] == [
        *("mail-1", "mail-2", "mail-5", "mail-6")
    ]


def test_peoples_labels_about_the_source_are_none_of_what_is_written(mails: Typed) -> None:
    about_mail = {"labels": {"friendly": "no"}, "annotators": {"ann": {"group": "x"}}}
    line = {"id": "m", "email": "Send it at once!", "country": "PE", "label": "angry", **about_mail}
    (mails.folder / "mails.jsonl").write_text(json.dumps(line))
    mails(*GO[:2], "mails.jsonl", *GO[3:], "-o", "kept.jsonl")
    (kept,) = lines(mails.read("kept.jsonl"))
    assert kept["label"] == "angry" and not about_mail.keys() & kept.keys()


def test_a_resumed_run_makes_nothing_again_and_gives_the_same_bytes(mails: Typed) -> None:
    mails(*GO, "-o", "whole.jsonl")
    files = ("whole.jsonl", "whole.jsonl.discarded.jsonl")
    whole = {name: mails.read(name) for name in files}
    # As a kill leaves them: one line of each is there, and the beginning of another.
    for name in files:
        head, _, rest = whole[name].partition(b"\n")
        (mails.folder / name).write_bytes(head + b"\n" + rest[:40])
    code, _, err = mails.text(*GO, "-o", "whole.jsonl", "--resume", "--no-cache")
    assert (code, {name: mails.read(name) for name in files}) == (0, whole)
    assert "2 kept" in err
    code, _, err = mails.text(*GO, "-o", "whole.jsonl", "--resume", "--no-cache")
    assert (code, {name: mails.read(name) for name in files}) == (0, whole)
    assert "6 kept, 0 calls" in " ".join(err.split())


def test_a_person_overrules_the_judges_and_is_asked_once(mails: Typed) -> None:
    mails(*GO, "-o", "kept.jsonl", "--review", "mine.jsonl")
    asked = lines(mails.read("mine.jsonl"))
    # What the writer refused is nothing to decide about.
    assert [line["id"] for line in asked] == ["reply-0-4"]
    refused = lines(mails.read("kept.jsonl.discarded.jsonl"))[0]
    mails.write("mine.jsonl", [{**one, "labels": {"friendly": "yes"}} for one in (*asked, refused)])
    again = (*GO, "-o", "kept.jsonl", "--resume", "--decisions", "mine.jsonl")
    code, _, err = mails.text(*again, "--review", "more.jsonl")
    assert code == 0 and "5 of 6 drafts kept; 1 kept by people" in err
    kept = lines(mails.read("kept.jsonl"))
    assert [line["id"] for line in kept] == [f"reply-0-{n}" for n in (1, 2, 4, 5, 6)]
    last = kept[2]["judge"]["checks"][-2:]
    assert [(c["by"], c["verdict"]) for c in last] == [("loop", "fail"), ("person", "pass")]
    discarded = lines(mails.read("kept.jsonl.discarded.jsonl"))
    assert [line["id"] for line in discarded] == ["reply-0-3"]
    assert mails.read("more.jsonl") == b"", "nobody is asked twice"
    # Who agrees with the judges keeps nothing that they would not.
    mails.write("mine.jsonl", [{**kept[1], "labels": {"friendly": "yes"}}])
    assert "5 of 6 drafts kept; 1 kept by people" in mails.text(*again)[2]
    # A person's no takes a record out again.
    mails.write("mine.jsonl", [{**kept[0], "labels": {"friendly": "no"}}])
    code, _, err = mails.text(*again)
    assert code == 0 and "4 of 6 drafts kept; 1 kept by people" in err
    lost = lines(mails.read("kept.jsonl.discarded.jsonl"))
    assert [line["id"] for line in lost] == ["reply-0-1", "reply-0-3"]
    mails.write("mine.jsonl", [{**kept[0], "labels": {"friendly": "perhaps"}}])
    code, _, err = mails.text(*again)
    assert code == 2 and "line 1: friendly must be one of yes, no" in " ".join(err.split())
    # Of a draft that is not there it is told where all drafts are.
    mails.write("mine.jsonl", [{**kept[0], "id": "other", "labels": {"friendly": "no"}}])
    missing = "1 decided record is not among the drafts"
    code, _, err = mails.text(*again)
    assert code == 0 and missing in err
    begun = (*GO, "-o", "begun.jsonl", "--no-cache", "--resume", "--decisions", "mine.jsonl")
    code, _, err = mails.text(*begun, "--max-calls", "2")
    assert code == 4 and missing not in err, err


def test_near_duplicates_are_rejected_in_the_order_of_the_drafts(mails: Typed) -> None:
    code, _, err = mails.text(*GO, "-o", "kept.jsonl", "--max-similarity", "0.9")
    assert code == 0
    # The two answers to JP are one text, and so are those to PE; DE has none.
    kept = lines(mails.read("kept.jsonl"))
    assert [line["id"] for line in kept] == ["reply-0-1", "reply-0-5"]
    lost = lines(mails.read("kept.jsonl.discarded.jsonl"))
    assert lost[0]["judge"]["reason"] == "similarity: 1.00 to reply-0-1"
    assert "near-duplicate 2" in err


def test_drafts_of_the_same_material_are_different_texts(
    mails: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is asked about each, with another seed; a repeated run asks nothing again."""

    def answer(asked: Asked) -> Answer:
        if "Write a reply" in asked.prompt:
            return says({"reply": f"Thank you, says draw {asked.body['seed']}."})
        return says({"reason": "Warm.", "answer": "yes", "quote": "Thank you"})

    (mails.folder / "mails.csv").write_text("email,country\n" + "Where is it?,JP\n" * 3)
    with Loopback(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        run = ("generate", "reply.yaml", "mails.csv", "-m", "openai:m", "-o", "kept.jsonl")
        assert mails.text(*run)[0] == 0
        first = mails.read("kept.jsonl")
        assert len({line["reply"] for line in lines(first)}) == 3
        asked = len(server.asked)
        assert mails.text(*run, "--overwrite")[0] == 0
        assert mails.read("kept.jsonl") == first and len(server.asked) == asked


def test_a_run_is_not_resumed_into_the_lines_of_another_set(mails: Typed) -> None:
    mails(*GO, "-o", "kept.jsonl")
    before = mails.read("kept.jsonl")
    other = (mails.folder / "reply.yaml").read_text().replace("name: reply_to_mail", "name: answer")
    (mails.folder / "answer.yaml").write_text(other)
    words = ("generate", "answer.yaml", *GO[2:], "-o", "kept.jsonl", "--resume")
    code, _, err = mails.text(*words)
    assert code == 2 and "kept.jsonl holds records of reply@" in err and "not of answer@" in err
    assert mails.read("kept.jsonl") == before


def test_a_resumed_run_compares_again_what_is_there(mails: Typed) -> None:
    files = ("kept.jsonl", "kept.jsonl.discarded.jsonl")

    def made(*more: str) -> list[bytes]:
        code, _, err = mails.text(*GO, "-o", "kept.jsonl", *more)
        assert code == 0, err
        return [mails.read(name) for name in files]

    limit, again = ("--max-similarity", "0.9"), ("--resume", "--no-cache", "--max-calls", "0")
    everything = made()
    different = made("--overwrite", *limit)
    assert different != everything
    assert made(*again, *limit) == different
    assert made(*again) == everything and made(*again, *limit) == different
    # As an error at the first draft leaves them: the second one was like none then.
    kept = [line for line in everything[0].splitlines(True) if b"reply-0-2" in line]
    lost = [line for line in different[1].splitlines(True) if b'"reply-0-2"' not in line]
    for name, part in zip(files, (kept, lost), strict=True):
        (mails.folder / name).write_bytes(b"".join(part))
    assert made("--resume", *limit) == different


@pytest.mark.parametrize("rubric", ["friendly.yaml", "./friendly.yaml", "./judges"])
def test_a_rubric_is_read_beside_its_recipe(mails: Typed, rubric: str) -> None:
    folder = mails.folder / "recipes"
    (folder / "judges").mkdir(parents=True)
    shutil.copy(mails.folder / "friendly.yaml", folder / "judges")
    shutil.move(mails.folder / "friendly.yaml", folder)
    recipe = (mails.folder / "reply.yaml").read_text()
    (folder / "reply.yaml").write_text(recipe.replace("friendly.yaml", rubric))
    code, out, err = mails.text("generate", "recipes/reply.yaml", *GO[2:], "--dry-run")
    assert code == 0 and "6 drafts" in out, err


def test_a_dry_run_asks_nothing_and_counts_each_round(mails: Typed) -> None:
    code, out, _ = mails.text(*GO, "--dry-run")
    assert code == 0 and "6 drafts" in out
    # At the least a text and a verdict each; at the most three further rounds.
    assert "rewriting 6 24" in " ".join(out.split()) and not (mails.folder / "cache").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("writes: []\n", "writes"),
        ("writes: [reply]\nrubrics: [nowhere.yaml]\n", "nowhere.yaml"),
        ("writes: [reply]\nroundz: 3\n", "unknown key"),
        ("", "writes"),
    ],
)
def test_a_wrong_recipe_is_refused_before_anything_is_asked(
    mails: Typed, change: str, told: str
) -> None:
    text = "name: it\nfields: [email]\nquestion: Write.\n"
    (mails.folder / "bad.yaml").write_text(text + change)
    code, out, err = mails.text("generate", "bad.yaml", "mails.csv", "-m", "scripted:writer.yaml")
    assert (code, out) == (2, "") and told in err


def test_bad_lines_and_failing_servers_lose_nothing(mails: Typed) -> None:
    mails.write("in.jsonl", [{"email": "Hello.", "country": "FR"}], "not JSON\n")
    flaky = mails.script("flaky.yaml", [{"error": "bad-request", "times": 1}, {"reply": {}}])
    go = ("generate", "reply.yaml", "in.jsonl", "-m", flaky, "-o", "kept.jsonl")
    code, _, err = mails.text(*go)
    assert code == 3
    lost = lines(mails.read("kept.jsonl.discarded.jsonl"))
    assert [line["judge"]["error"]["type"] for line in lost] == ["bad-request", "bad-input"]
    assert "source 2 1 bad input 1 error 1 0 bad-request 1" in " ".join(err.split())
    code, _, err = mails.text(*go[:4], "scripted:writer.yaml", *go[5:], "--resume")
    assert code == 3 and "1 of 2 drafts kept" in err
    assert [line["id"] for line in lines(mails.read("kept.jsonl"))] == ["reply-0-1"]
    lost = lines(mails.read("kept.jsonl.discarded.jsonl"))
    assert [line["judge"]["error"]["type"] for line in lost] == ["bad-input"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name a set and its sources, or a recipe (FILE.yaml)"),
        (("reply.yaml",), "records are made from: judge generate reply.yaml SOURCE"),
    ],
)
def test_without_a_set_or_its_sources_there_is_nothing_to_write(
    mails: Typed, words: tuple[str, ...], told: str
) -> None:
    code, _, err = mails.text("generate", *words, *GO[3:])
    assert code == 2 and told in err


def test_a_field_both_shown_and_written_is_refused_with_its_line(mails: Typed) -> None:
    recipe = mails.read("reply.yaml").decode()
    (mails.folder / "reply.yaml").write_text(recipe.replace("writes: [reply]", "writes: [email]"))
    line = 1 + recipe[: recipe.index("writes:")].count("\n")
    code, out, err = mails.text(*GO, "-o", "kept.jsonl")
    assert (code, out) == (2, "") and f"reply.yaml:{line}: writes.0: the writer is shown" in err
    assert not list(mails.folder.glob("kept*"))
    # A column that the writer is not shown may be written anew, which is said.
    own = recipe.replace("[reply]", "[country]", 1).replace("rubrics: [friendly.yaml]\n", "")
    (mails.folder / "reply.yaml").write_text(own)
    mails.script("w.yaml", [{"reply": {"country": "XX"}}])
    words = (*GO[:-1], "scripted:w.yaml", "-o", "kept.jsonl", "--overwrite")
    err = mails.text(*words)[2]
    assert "what is written replaces country of the source; --map OTHER_NAME=country keeps" in err
    assert "replaces" not in mails.text(*words, "--map", "origin=country")[2]
    first = lines(mails.read("kept.jsonl"))[0]
    assert (first["country"], first["origin"]) == ("XX", "JP")


def test_it_is_told_who_judges_and_why_drafts_are_lost(mails: Typed) -> None:
    code, _, err = mails.text(*GO, "-o", "kept.jsonl")
    assert code == 0 and "no --judge-model: scripted:writer.yaml judges its own drafts" in err
    judge = ("--judge-model", "scripted:writer.yaml")
    assert "no --judge-model" not in mails.text(*GO, *judge, "-o", "other.jsonl")[2]
    text = " ".join(err.split())
    assert "failed: 2 reply-0-3 reply_to_mail gave up: refused: I cannot reply to private" in text
    assert "reply-0-4 friendly: fail: It turns the reader away." in text
    page = "kept.jsonl.discarded.html"
    assert text.endswith(f"next: judge report kept.jsonl.discarded.jsonl -o {page}")
    assert mails("report", "kept.jsonl.discarded.jsonl", "-o", page).returncode == 0
    for more in (("--judge-model", "scripted:writer.yaml"), ("-q",)):
        assert "own drafts" not in mails.text(*GO, *more)[2]

    recipe = mails.read("reply.yaml").decode()
    line = 1 + recipe[: recipe.index("rubrics:")].count("\n")
    other = recipe.replace("[friendly.yaml]", "[friendly.yaml, nowhere.yaml]")
    (mails.folder / "other.yaml").write_text(other)
    code, _, err = mails.text("generate", "other.yaml", *GO[2:])
    assert code == 2 and f"other.yaml:{line}: rubrics.1: nowhere.yaml: cannot be read" in err
    (mails.folder / "none.yaml").write_text(recipe.replace("[friendly.yaml]", "[]"))
    code, _, err = mails.text("generate", "none.yaml", *GO[2:])
    assert code == 0 and "none names no rubrics: nothing is judged, every draft is kept" in err
    assert "own drafts" not in err and "abstained" not in err


def test_capitalised_words_are_counted_in_their_order_unless_all_nouns_are() -> None:
    def counted(*texts: str) -> dict[str, int] | None:
        found = Diversity("text", ())
        for text in texts:
            found.add(written({"id": "a", "text": text}, {"verdict": "pass"}))
        return found.as_json()["capitalised"]

    words = ("Zoe", "Ada", "Émile", "Quinn", "Iris", "Bela", "Yuki", "Omar")
    one = " ".join(f"We had told our friend {word} all of it already." for word in words)
    assert [*(counted(one, "Then we saw Ada there again.") or {}).items()] == [
        *(("Ada", 2), ("Zoe", 1), ("Émile", 1), ("Quinn", 1), ("Iris", 1), ("Bela", 1)),
        *(("Yuki", 1), ("Omar", 1)),
    ]
    assert counted("Mit der Flasche wird das Büro warm, und die Mühle mahlt den Kaffee.") is None
    assert counted() == {}


def test_a_field_that_no_line_has_is_refused_before_anything_is_asked(mails: Typed) -> None:
    recipe = mails.read("reply.yaml").decode()
    (mails.folder / "reply.yaml").write_text(recipe.replace("[email]", "[country, emial]"))
    for more in (("-o", "kept.jsonl"), ("--dry-run",)):
        code, out, err = mails.text(*GO, *more)
        assert (code, out) == (2, "") and "did you mean email?" in " ".join(err.split())
        assert "reply.yaml: field emial: no record has this field" in " ".join(err.split())
    for more, right in (("counted: [emial]", "email"), ("text: rpely", "reply")):
        plain = recipe.replace("counted: [country]\n", "")
        (mails.folder / "reply.yaml").write_text(f"{plain.rstrip()}\n{more}\n")
        code, _, err = mails.text(*GO)
        field = more.split()[1].strip("[]")
        assert (
            code == 2 and f"field {field}: no record has this field; did you mean {right}?" in err
        )
    (mails.folder / "reply.yaml").write_text(recipe.replace("[email]", "[country, emial]"))
    assert not list(mails.folder.glob("kept*"))
    # A field that some lines have is asked of these.
    few = b'{"id": "x", "country": "FR"}\n{"id": "y", "country": "FR", "emial": "Received."}\n'
    (mails.folder / "few.jsonl").write_bytes(few)
    code, _, err = mails.text(*GO[:2], "few.jsonl", *GO[3:])
    assert code == 0 and "the record has no emial 1" in " ".join(err.split())


def test_where_nothing_is_kept_nothing_is_compared(mails: Typed) -> None:
    table = mails.read("mails.csv").splitlines(keepends=True)
    (mails.folder / "mails.csv").write_bytes(table[0] + table[3])
    code, _, err = mails.text(*GO)
    assert code == 0 and "0 of 1 draft kept" in err and "near-duplicates" not in err


def test_a_run_in_which_no_draft_can_be_asked_for_is_no_success(mails: Typed) -> None:
    mails.write("none.jsonl", [{"email": "", "country": "FR"}, {"id": "b"}])
    words = ("generate", "reply.yaml", "none.jsonl", *GO[3:], "-o", "none.out.jsonl")
    assert mails(*words, "--summary", "sums.json").returncode == 3
    assert json.loads(mails.read("sums.json"))["exit_code"] == 3
    assert mails(*words, "--resume").returncode == 3
    mails.write("none.jsonl", [{"email": ""}, {"email": "Thank you!", "country": "FR"}])
    assert mails(*words, "--overwrite").returncode == 0


@pytest.mark.parametrize(
    ("texts", "copied"),
    [
        # By words: the new mail is most of it, however many of its short fields are the example's.
        (
            {"mail": "Your parcel waits at the desk of the second floor", "tone": "plain and kind"},
            False,
        ),
        ({"mail": "Dear all, the lift works again from today", "tone": "short and dry"}, True),
        # Categories alone are an example's only if all are.
        ({"mail": "hi", "tone": "kind"}, False),
        ({"mail": "yes", "tone": "kind"}, True),
    ],
)
def test_a_draft_is_copied_if_most_of_its_words_are_an_examples(
    typed: Typed, texts: dict[str, str], copied: bool
) -> None:
    example = {"mail": "Dear all, the lift works again from today", "tone": "plain and kind"}
    short = {"mail": "yes", "tone": "kind"}
    examples = [{"text": "Of what?", "reply": json.dumps(one)} for one in (example, short)]
    recipe = {"name": "mail_writing", "fields": ["topic"], "question": "Write.", "writes": [*texts]}
    (typed.folder / "r.yaml").write_text(json.dumps({**recipe, "examples": examples}))
    typed.write("t.jsonl", [{"id": "t", "topic": "lifts"}])
    typed.script("w.yaml", [{"reply": texts}])
    code, out, told = typed.text("generate", "r.yaml", "t.jsonl", "-m", "scripted:w.yaml")
    assert code == 0, told
    assert bool(out) != copied and ("copied 1" in told) == copied, told
