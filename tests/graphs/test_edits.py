from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.graphs.edits import Passage, apply_insertions, apply_rewrites, passages
from judge.graphs.replies import Insertion, Insertions, Rewrite, Rewrites
from judge.graphs.values import Value

from judge.judgement import Edit
from judge.questions.evidence import SPEECH_MARKS
from judge.records import Record
from judge.verdict import Answer, Verdict

VALUES = tuple(Value.parse(f"{s}--Agree") for s in ("one", "two", "three"))


EDIT = partial(Edit, check="c", round=1, model="m:x")


def record(story: str) -> Record:
    fields = {"story": story, "values": [value.text for value in VALUES]}
    return Record("s.jsonl", 1, fields).of_kind("story")


def rewritten(story: str, *pairs: tuple[str, str]) -> tuple[str, list[Edit]]:
    """The story after each passage is replaced by the words beside it."""
    places = []
    for before, _ in pairs:
        start = story.index(before)
        places.append(Passage(start, start + len(before), "Bo", (1,)))
    reply = Rewrites(rewrites=[Rewrite(passage=n, text=new) for n, (_, new) in enumerate(pairs, 1)])
    return apply_rewrites(record(story), places, reply, EDIT)


def inserted(story: str, *parts: tuple[int, str, str]) -> tuple[str, list[Edit]]:
    reply = Insertions(
        insertions=[
            Insertion(value=n, after=after, character="Bo", dialogue=new) for n, after, new in parts
        ]
    )
    return apply_insertions(record(story), reply, EDIT)


# ---------------------------------------------------------------- passages


def finding(quote: str | None, number: int, character: str = "Bo") -> Answer:
    return Answer(
        value=VALUES[number - 1].text, verdict=Verdict.FAIL, character=character, quote=quote
    )


def test_passages_come_in_story_order_and_overlapping_ones_become_one() -> None:
    story = 'Bo rose. "I would keep it. All of it. Every coin," he said. "Yes."'
    found = passages(
        record(story),
        [
            finding("Yes.", 3),
            finding("All of it. Every coin", 2),
            finding("I would keep it. All of it.", 1),
            finding("never said at all", 1),
            finding(None, 1),
            Answer(
                value="another value--Agree", verdict=Verdict.FAIL, character="Bo", quote="Yes."
            ),
        ],
    )
    assert [(story[p.start : p.end], p.numbers) for p in found] == [
        ("I would keep it. All of it. Every coin", (1, 2)),
        ("Yes.", (3,)),
    ]


# ---------------------------------------------------------------- rewrites


def test_rewrites_change_the_passages_and_nothing_else() -> None:
    story = 'Bo rose. "I keep it," he said.\n\n"So do I," said An. "All of it."'
    new, edits = rewritten(story, ("I keep it,", "I took it back,"), ("All of it.", "To the door."))
    assert new == 'Bo rose. "I took it back," he said.\n\n"So do I," said An. "To the door."'
    assert [(e.before, e.after) for e in edits] == [
        ("I keep it,", "I took it back,"),
        ("All of it.", "To the door."),
    ]
    assert edits[0].values == ("one--Agree",) and edits[0].character == "Bo"


@pytest.mark.parametrize(
    "marks", ['""', "\u201c\u201d", "\u201e\u201c", "\u00ab\u00bb", "\u300c\u300d"]
)
@pytest.mark.parametrize("given_marks", ["", '""', "\u201c\u201d"])
def test_the_storys_own_marks_stay_however_the_new_words_come(marks: str, given_marks: str) -> None:
    a, z = marks
    story = f"Bo rose. {a}I keep it,{z} he said."
    words = "I took it back,"
    given_words = f"{given_marks[:1]}{words}{given_marks[1:]}"
    wanted = f"Bo rose. {a}I took it back,{z} he said."
    assert rewritten(story, ("I keep it,", given_words))[0] == wanted
    assert rewritten(story, (f"{a}I keep it,{z}", given_words))[0] == wanted


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        # narration may become narration with speech in it, or speech
        ("He kept it.", 'He said, "Take it back."', 'He said, "Take it back."'),
        ("He kept it.", '"Back," he said. "Now."', '"Back," he said. "Now."'),
        ("He kept it.", '"Take it back."', '"Take it back."'),
        ("He kept it.", "He took it back.", "He took it back."),
        # a whole speech with its tag in the middle
        ('"Mine," he said. "All."', '"Back," he said. "Now."', '"Back," he said. "Now."'),
        ('"Mine," he said. "All."', "Take it back.", '"Take it back."'),
        # the same without the outer marks
        ('Mine," he said. "All.', "Take it back.", "Take it back."),
        ('Mine," he said. "All.', 'Back," he said. "Now.', 'Back," he said. "Now.'),
        ('Mine," he said. "All.', '"Back," he said. "Now."', 'Back," he said. "Now.'),
        # one mark of a pair
        ('Mine," he said.', '"Take it back."', 'Take it back."'),
        ('he said. "All.', '"Take it back."', '"Take it back.'),
    ],
)
def test_speech_marks_come_in_pairs_after_a_rewrite(before: str, words: str, after: str) -> None:
    story = 'It rained. "Mine," he said. "All." He kept it. They left.'
    new, edits = rewritten(story, (before, words))
    assert new == story.replace(before, after)
    assert edits[0].after == after
    assert sum(char in SPEECH_MARKS for char in new) % 2 == 0


def test_words_within_a_speech_bring_no_marks_of_their_own() -> None:
    story = 'It rained. "I keep it, all of it, here," he said.'
    assert rewritten(story, ("all of it,", '"some of it,"'))[0] == story.replace("all", "some")
    inches = 'A 6" nail. "I keep it," he said.'
    assert rewritten(inches, ("I keep it,", '"I sold it,"'))[0] == inches.replace("keep", "sold")


@given(
    words=st.text(alphabet='ab ,."', min_size=1, max_size=20).filter(lambda t: t.strip(' "')),
    before=st.sampled_from(["Mine,", '"Mine,"', "All.", '"All."', "he said.", "He kept it."]),
)
def test_whatever_the_new_words_are_the_rest_of_the_story_stays(words: str, before: str) -> None:
    story = 'It rained. "Mine," he said. "All." He kept it.\n\n"Yes," said An.'
    new, (edit,) = rewritten(story, (before, words))
    head, tail = story.split(before, 1)
    assert new == head + edit.after + tail
    assert edit.before == before


# ---------------------------------------------------------------- insertions


@pytest.mark.parametrize(
    ("story", "anchor", "new"),
    [
        ("Odd nodded. He left.", "Odd nodded.", "Odd nodded. {} He left."),
        ("Odd nodded. He left.", "He left.", "Odd nodded. He left. {}"),
        ("Odd nodded", "nodded", "Odd nodded {}"),
        ("Odd nodded.\n\nHe left.", "Odd nodded.", "Odd nodded.\n\n{}\n\nHe left."),
        ("Odd nodded.\nHe left.", "Odd nodded.", "Odd nodded.\n{}\nHe left."),
        ("Odd nodded. \r\n\r\nHe left.", "Odd nodded.", "Odd nodded.\r\n\r\n{} \r\n\r\nHe left."),
        # not into a speech, and not between a speech and who says it
        ('"I went. I saw," said Bo. He left.', "I went.", '"I went. I saw," said Bo. {} He left.'),
        ('"Really?" said Bo. He left.', '"Really?"', '"Really?" said Bo. {} He left.'),
        ('"I went. I saw." He left.', "I went. I saw.", '"I went. I saw." {} He left.'),
        ("\u201cI went.\u201d He left.", "\u201cI went.\u201d", "\u201cI went.\u201d {} He left."),
        ('Bo: "I went. I saw', "I went.", 'Bo: "I went. I saw {}'),
        (
            "\u4ed6\u8d70\u4e86\u3002\u5979\u6765\u4e86\u3002",
            "\u4ed6\u8d70\u4e86",
            "\u4ed6\u8d70\u4e86\u3002 {}\u5979\u6765\u4e86\u3002",
        ),
        # not into a parenthesis of full width; and the full stops of Armenian and of half width
        (
            "\u4ed6\u7b11\uff08\u771f\u7684\uff01\uff09\u5979\u6765\u4e86\u3002",
            "\u4ed6\u7b11",
            "\u4ed6\u7b11\uff08\u771f\u7684\uff01\uff09 {}\u5979\u6765\u4e86\u3002",
        ),
        (
            "\u0546\u0561 \u0563\u0576\u0561\u0581\u0589 \u0537\u056c\u056b\u0589",
            "\u0563\u0576\u0561\u0581",
            "\u0546\u0561 \u0563\u0576\u0561\u0581\u0589 {} \u0537\u056c\u056b\u0589",
        ),
        (
            "\u884c\u304f\uff61\u6765\u308b\uff61",
            "\u884c\u304f",
            "\u884c\u304f\uff61 {}\u6765\u308b\uff61",
        ),
    ],
)
def test_dialogue_goes_behind_the_sentence_that_holds_its_anchor(
    story: str, anchor: str, new: str
) -> None:
    dialogue = '"I carried her bag," Bo said.'
    text, (edit,) = inserted(story, (1, anchor, f" {dialogue}\n"))
    assert text == new.format(dialogue)
    assert (edit.before, edit.after) == ("", dialogue)


SENTENCES = st.sampled_from(
    [
        "Odd nodded.",
        '"Really?" said Bo.',
        '"I went. I saw," said An.',
        "It rained\u2026 and rained.",
        '"No!"',
    ]
)


@given(
    sentences=st.lists(
        st.tuples(SENTENCES, st.sampled_from([" ", "\n\n"])), min_size=1, max_size=8
    ),
    data=st.data(),
)
def test_an_insertion_removes_nothing_and_never_falls_into_a_speech(
    sentences: list[tuple[str, str]], data: st.DataObject
) -> None:
    story = "".join(sentence + gap for sentence, gap in sentences).strip()
    anchor, _ = data.draw(st.sampled_from(sentences))
    text, _ = inserted(story, (1, anchor, "NEW"))
    assert re.sub(r"\s+", " ", text.replace("NEW", " ")).strip() == re.sub(r"\s+", " ", story)
    before = text[: text.index("NEW")]
    assert before.rsplit("\n", 1)[-1].count('"') % 2 == 0
    assert re.search(r"[.!?\u2026]\"?\s+$", before)
