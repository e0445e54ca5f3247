"""`judge generate norms`: NormAd's situations (4.1, 4.2) by a scripted writer with faults."""

from __future__ import annotations

import json
from collections import Counter
from itertools import cycle, islice
from typing import Any

import pytest
from waiting import wait_for_lines

from judge.generate.generator import DraftOptions
from judge.papers.normad import COUNTRIES, cluster_of
from judge.papers.norms import drafts, form_problem, regrouped
from judge.records import Record
from tests.cli.conftest import Shell, lines
from tests.cli.typed import Typed

DEED = "Ann did {{ norm }}"
STORY = f"{DEED}. Is what Ann did socially acceptable?"
TEXTS = {"value": "Care", "rule_of_thumb": "One should do {{ norm }}.", "explanation": "So."}


def writes(story: str = STORY, **when: str) -> list[dict[str, Any]]:
    text = json.dumps({**TEXTS, "story": story})
    return [
        {"when": {"rubric": rubric, **when}, "reply": text}
        for rubric in ("situation", "neutral_situation")
    ]


def says(rubric: str, answer: str, quote: str | None = None, **when: Any) -> dict[str, Any]:
    reply = json.dumps({"quote": quote, "reason": "it is so", "answer": answer})
    return {"when": {"rubric": rubric, **when}, "reply": reply}


FITS = "{{ 'no' if label == 'neutral' else 'yes' }}"
ENTAILED = says("derivation", "yes", "{{ background.splitlines()[0][2:] }}")


def faulty(stage: str, draft: str, label: str) -> list[dict[str, Any]]:
    """A draft that is lost at a stage, whatever is written."""
    if stage == "refused":
        refusal = {"finish_reason": "refusal", "text": "I would rather not."}
        return [
            {"when": {"id": draft, "rubric": r}, **refusal}
            for r in ("situation", "neutral_situation")
        ]
    if stage == "abstraction":
        return [says(stage, "no", id=draft)]
    entry = ENTAILED if label == "neutral" else says("derivation", "no")
    return [{**entry, "when": {"rubric": "derivation", "id": draft}}]


def sound() -> list[dict[str, Any]]:
    """Judges that pass everything, and say that a neutral draft's rule is not from its
    background."""
    derivation = (
        '{"quote": {% if label == "neutral" %}null{% else %}"{{ norm }}"{% endif %}, '
        '"reason": "so", '
        f'"answer": "{FITS}"' + "}"
    )
    return [
        *writes(),
        says("relevance", FITS, DEED),
        {"when": {"rubric": "derivation"}, "reply": derivation},
        says("abstraction", "yes"),
    ]


def norm_line(country: str, subcategory: str, **more: Any) -> dict[str, Any]:
    norms = [f"deed {n} at {subcategory} of {country}" for n in range(9)]
    norms = [norm.replace(country, str(COUNTRIES.index(country))) for norm in norms]
    return {"country": country, "subcategory": subcategory, "norms": norms, **more}


# ---------------------------------------------------------------- the paper's counts

LABELS = ("neutral", "no", "yes")
TABLE_2 = {
    "African-Islamic": (212, 228, 247),
    "Catholic Europe": (85, 81, 86),
    "Confucian": (52, 54, 59),
    "English Speaking": (59, 74, 76),
    "Latin America": (70, 73, 89),
    "Orthodox Europe": (80, 84, 89),
    "Protestant Europe": (56, 61, 66),
    "West and South Asia": (201, 220, 231),
}
# Nine drafts a line; 303 of them, of which 94 drafts are lost.
LINES = dict(zip(TABLE_2, (78, 29, 20, 25, 27, 30, 21, 73), strict=True))
SUBCATEGORIES = (
    *("eating", "visiting", "gift-giving", "basic etiquette", "giving compliments", "dates"),
)


def atlas() -> tuple[list[dict[str, Any]], dict[str, Counter[str]]]:
    """303 lines, nine drafts each, and how many drafts are lost by cluster and label.

    Three a label, as section 4.1 has it, cannot give table 2, whose 943 yes are more than 3 x 303.
    """
    rows, losses = [], {}
    for cluster, kept in TABLE_2.items():
        number = LINES[cluster]
        losses[cluster] = Counter(islice(cycle(LABELS), 9 * number - sum(kept)))
        counts = {label: n + losses[cluster][label] for label, n in zip(LABELS, kept, strict=True)}
        labels = [label for label, count in counts.items() for _ in range(count)]
        countries = [country for country in COUNTRIES if cluster_of(country) == cluster]
        for n in range(number):
            here = countries[n % len(countries)], SUBCATEGORIES[n // len(countries)]
            rows.append(norm_line(*here, drafts=dict(Counter(labels[n::number]))))
    return rows, losses


@pytest.mark.slow
def test_the_paper_s_counts_through_generate_and_build(typed: Typed) -> None:
    rows, losses = atlas()
    assert len(rows) == 303 and sum(c.total() for c in losses.values()) == 94
    typed.write("atlas.jsonl", rows)
    stages = iter(["refused", *["derivation"] * 73, *["abstraction"] * 20])
    made = [draft.fields for draft in drafts(["atlas.jsonl"], DraftOptions())]
    assert len(made) == 2727
    script: list[dict[str, Any]] = []
    whole: list[dict[str, Any]] = []
    for draft in made:
        if losses[draft["cluster"]][draft["label"]]:
            losses[draft["cluster"]][draft["label"]] -= 1
            script += faulty(next(stages), draft["id"], draft["label"])
        else:
            whole.append(draft)
    # 27 first attempts miss the point, and are written anew.
    script += [
        says("relevance", "yes" if d["label"] == "neutral" else "no", DEED, id=d["id"], round=1)
        for d in whole[:2700:100]
    ]
    model = typed.script("writer.yaml", [*script, *sound()])
    go = ("generate", "norms", "atlas.jsonl", "-m", model, "-o", "norms.jsonl", "--no-cache")
    code, _, err = typed.text(*go, "--summary", "sums.json")
    assert code == 0, err
    sums = json.loads(typed.read("sums.json"))
    funnel = {s["stage"]: (s["in"], s["out"]) for s in sums["funnel"]["stages"]}
    assert funnel["form"] == funnel["relevance"] == (2726, 2726)
    assert (funnel["derivation"], funnel["abstraction"]) == ((2726, 2653), (2653, 2633))
    assert sums["diversity"]["counts"]["label"] == {"yes": 943, "no": 875, "neutral": 815}
    cells = {
        f"{cluster} / {label}": count
        for cluster, counts in TABLE_2.items()
        for label, count in zip(LABELS, counts, strict=True)
    }
    assert sums["diversity"]["crossed"] == cells
    again = [line for line in lines(typed.read("norms.jsonl")) if len(line["judge"]["checks"]) > 4]
    assert len(again) == 27
    assert typed("build", "filtered", "norms.jsonl", "-o", "sound.jsonl", "-q").returncode == 0
    assert len(lines(typed.read("sound.jsonl"))) == 2633


# ---------------------------------------------------------------- drafts


def test_nine_drafts_a_line_and_a_neutral_norm_from_another_cluster(typed: Typed) -> None:
    rows = [norm_line(c, s) for c in ("chile", "peru", "japan") for s in ("eating", "visiting")]
    typed.write("atlas.jsonl", rows)
    made = [draft.fields for draft in drafts(["atlas.jsonl"], DraftOptions(seed=1))]
    assert Counter(d["label"] for d in made) == {"yes": 18, "no": 18, "neutral": 18}
    for draft in made:
        if draft["label"] == "neutral":
            assert cluster_of(draft["other_country"]) != draft["cluster"]
            assert draft["norm"] in draft["other_background"]
            assert draft["subcategory"] in draft["norm"]
        else:
            assert f"- {draft['norm']}\n" in draft["background"] + "\n"
    norms = [d["norm"] for d in made[:6]]
    assert len({*norms[:3]}) == len({*norms[3:]}) == 3, "each draft of a label has its own norm"
    # A second line of a country and subcategory has draws of its own, and the first keeps its.
    typed.write("atlas.jsonl", [*rows, rows[0]])
    again = [draft.fields for draft in drafts(["atlas.jsonl"], DraftOptions(seed=1))]
    assert again[:9] == made[:9]
    assert {d["norm"] for d in again[54:60]} - {d["norm"] for d in made[:6]}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"country": "peru", "norms": ["a"]}, "field 'subcategory' is missing"),
        ({"country": "peru", "subcategory": "x", "norms": "a"}, "field 'norms' must be a list"),
        (
            {"country": "peru", "subcategory": "x", "norms": ["a"], "drafts": {"maybe": 3}},
            "field 'drafts' must be",
        ),
    ],
)
def test_a_line_that_is_none_of_norms_is_told_and_loses_nothing(
    typed: Typed, line: dict[str, Any], told: str
) -> None:
    typed.write("atlas.jsonl", [line, norm_line("peru", "eating", drafts={"yes": 1, "no": 0})])
    model = typed.script("writer.yaml", sound())
    code, _, err = typed.text("generate", "norms", "atlas.jsonl", "-m", model, "-o", "n.jsonl")
    assert code == 3 and told in err
    assert [line["label"] for line in lines(typed.read("n.jsonl"))] == ["yes"]


def test_neutral_drafts_need_a_country_of_another_cluster(typed: Typed) -> None:
    typed.write("atlas.jsonl", [norm_line("peru", "eating")])
    model = typed.script("writer.yaml", sound())
    code, _, err = typed.text("generate", "norms", "atlas.jsonl", "-m", model, "-o", "n.jsonl")
    assert code == 2 and "no line is of a country in another cluster" in " ".join(err.split())


def test_neutral_norms_are_of_another_cluster_and_the_same_subcategory_however_spelt(
    typed: Typed,
) -> None:
    iran, turkey, italy = norm_line("iran", "eating"), norm_line("türkiye", "eating"), "Italy"
    others = [{**norm_line("italy", "Eating"), "country": italy}, norm_line("peru", "visiting")]
    near = [{**iran, "cluster": "african-islamic"}, {**turkey, "country": "Turkey"}]
    typed.write("atlas.jsonl", [*near, *others])
    found = [draft.fields for draft in drafts(["atlas.jsonl"], DraftOptions(each=9))]
    pairs = {(d["country"], d["other_country"]) for d in found if d["label"] == "neutral"}
    # Iran and Turkey are of one cluster, and only Peru has no line of its own subcategory.
    from_italy = {(italy, "iran"), (italy, "Turkey")}
    assert {pair for pair in pairs if pair[0] != "peru"} == from_italy | {
        ("iran", italy),
        ("Turkey", italy),
    }


# ---------------------------------------------------------------- written anew


def test_a_misfit_is_written_anew_as_a_whole_with_background_and_finding_in_view(
    typed: Typed,
) -> None:
    typed.write("atlas.jsonl", [norm_line("peru", "eating", drafts={"yes": 1})])
    better = json.dumps({**TEXTS, "value": "Thanks", "story": f"At noon {STORY}"})
    anew = {"when": {"rubric": "situation", "contains": "it is about a hat"}, "reply": better}
    seen = {**anew, "when": {**anew["when"], "lacks": "deed 0 at eating"}, "reply": "{}"}
    hat = {"quote": None, "reason": "it is about a hat", "answer": "no"}
    misfit = {"when": {"rubric": "relevance", "lacks": "At noon"}, "reply": hat}
    model = typed.script("writer.yaml", [seen, anew, misfit, *sound()])
    typed("generate", "norms", "atlas.jsonl", "-m", model, "-o", "n.jsonl", "-q")
    (line,) = lines(typed.read("n.jsonl"))
    assert line["value"] == "Thanks" and line["story"].startswith("At noon")
    asked = [(c["check"], c["round"], c["verdict"]) for c in line["judge"]["checks"]]
    assert asked == [
        *(("form", 1, "pass"), ("relevance", 1, "fail"), ("form", 2, "pass")),
        *(("relevance", 2, "pass"), ("derivation", 2, "pass"), ("abstraction", 2, "pass")),
    ]


def test_the_corrected_release_is_of_the_other_country_and_written_until_it_fits(
    typed: Typed,
) -> None:
    """The rule must follow from the new background, which alone must leave the story open."""
    rows = [norm_line("peru", "eating", drafts={"neutral": 1})]
    there = norm_line("japan", "eating", drafts={"no": 1}, cluster="East")
    typed.write("atlas.jsonl", [*rows, there])
    better = {"when": {"rubric": "neutral_situation", "contains": "it tells"}, "reply": ""}
    better["reply"] = json.dumps({**TEXTS, "story": f"At noon {STORY}"})
    settled = says("background_alone", "no", "{{ norm }}", lacks="At noon")
    settled["reply"] = settled["reply"].replace("it is so", "it tells")
    entailed = says("derivation", "yes", "{{ norm }}")
    rest = [says("background_alone", "neutral"), says("value_derivation", "yes", "{{ norm }}")]
    model = typed.script("writer.yaml", [better, settled, entailed, *rest, *sound()])
    go = ("generate", "norms", "atlas.jsonl", "-m", model, "--normad-release", "corrected", "-q")
    assert typed(*go, "-o", "n.jsonl").returncode == 0
    neutral, no = sorted(lines(typed.read("n.jsonl")), key=lambda line: str(line["label"] == "no"))
    assert (neutral["country"], neutral["cluster"]) == ("japan", "East"), "as its line says"
    assert neutral["norm"] in neutral["background"] and neutral["story"].startswith("At noon")
    asked = [(c["check"], c["round"], c["verdict"]) for c in neutral["judge"]["checks"]]
    assert ("background_alone", 1, "fail") in asked and ("background_alone", 2, "pass") in asked
    assert no["country"] == "japan" and not no["story"].startswith("At noon")
    del settled["when"]["lacks"]
    typed.script("writer.yaml", [better, settled, entailed, *rest, *sound()])
    assert typed(*go, "--rounds", "1", "-o", "never.jsonl").returncode == 0
    (lost,) = lines(typed.read("never.jsonl.discarded.jsonl"))
    assert lost["judge"]["generated"]["stage"] == "background_alone"
    alone = [c["round"] for c in lost["judge"]["checks"] if c["check"] == "background_alone"]
    assert alone == [1, 2]


def test_a_line_may_name_its_subcategory_among_the_four(typed: Typed) -> None:
    typed.write("a.jsonl", [norm_line("peru", "Toasts", group="basic_etiquette", drafts={"no": 1})])
    model = typed.script("writer.yaml", sound())
    assert typed("generate", "norms", "a.jsonl", "-m", model, "-o", "n.jsonl").returncode == 0
    (made,) = lines(typed.read("n.jsonl"))
    assert (made["subcategory"], made["atlas_subcategory"]) == ("basic_etiquette", "Toasts")
    assert regrouped("Toasts") == "eating"


def test_three_regenerations_at_most_and_a_person_before_a_discard(typed: Typed) -> None:
    typed.write("atlas.jsonl", [norm_line("peru", "eating", drafts={"yes": 1, "no": 1})])
    never = says("relevance", "no", id="norms-0-1")
    apart = says("derivation", "no", id="norms-0-2")
    model = typed.script("writer.yaml", [never, apart, *sound()])
    go = ("generate", "norms", "atlas.jsonl", "-m", model, "-o", "n.jsonl", "-q")
    assert typed(*go, "--review", "mine.jsonl").returncode == 0
    asked = lines(typed.read("mine.jsonl"))
    came = [line["judge"]["generated"] for line in asked]
    assert [(c["stage"], c["cause"]) for c in came] == [
        ("relevance", "fail"),
        ("derivation", "fail"),
    ]
    relevance = [c for c in asked[0]["judge"]["checks"] if c["check"] == "relevance"]
    assert [c["round"] for c in relevance] == [1, 2, 3, 4]
    asked[1]["labels"] = {"derivation": "yes"}
    typed.write("mine.jsonl", asked)
    assert typed(*go, "--resume", "--decisions", "mine.jsonl").returncode == 0
    assert [line["id"] for line in lines(typed.read("n.jsonl"))] == ["norms-0-2"]
    (lost,) = lines(typed.read("n.jsonl.discarded.jsonl"))
    assert lost["judge"]["generated"]["stage"] == "relevance"


@pytest.mark.parametrize(
    ("story", "rule", "problem"),
    [
        ("Ann bowed. Was that acceptable?", "One should bow.", None),
        ("Ann bowed. Was that acceptable", "One should bow.", "no closing question"),
        ("Ann fragte: \u201eGut so?\u201c", "One should bow.", None),
        ("Ann bowed. \u300c\u3044\u3044\u3067\u3059\u304b\uff1f\u300d", "Bow.", None),
        ("Ann bowed (was that acceptable?)", "One should bow.", None),
        ("A b. " * 5 + "Was it right?", "One should bow.", None),
        ("A b. " * 6 + "Was it right?", "One should bow.", "more than 5 sentences"),
        ("Ann bowed in Peru. Was it right?", "One should bow.", "a country is named"),
        ("Ann bowed. Was it right?", "In South Korea one bows.", "a country is named"),
        ("Ann bowed. Was it right?", "In Atlantis one bows.", "a country is named"),
        ("Ann bowed in America. Was it right?", "One should bow.", "a country is named"),
        ("Ann bowed. Was it right?", "In the UK one bows.", "a country is named"),
        ("Ann told us of fine china. Was it right?", "Roast a turkey.", None),
        ("Ann told us of fine China. Was it right?", "One should bow.", "a country is named"),
        ("安娜鞠躬了。她这样做可以吗？", "应该鞠躬。", None),
        ("انحنت آنا. هل هذا مقبول؟", "ينبغي الانحناء.", None),
    ],
)
def test_the_form_is_five_sentences_a_closing_question_and_no_place(
    story: str, rule: str, problem: str | None
) -> None:
    fields = {"country": "atlantis", "story": story, "rule_of_thumb": rule}
    assert form_problem(Record("f", 1, fields).of_kind("norm")) == problem


@pytest.mark.parametrize(
    ("own", "four"),
    [
        ("Eating", "eating"),
        ("table_manners", "eating"),
        ("Being a guest", "visiting"),
        ("Gift-giving", "gifting"),
        ("Giving compliments", "basic_etiquette"),
        ("Death and treatment of the bereaved", "basic_etiquette"),
    ],
)
def test_subcategories_come_to_four(own: str, four: str) -> None:
    assert regrouped(own) == four


def test_a_folder_of_rubrics_asks_writer_and_judges_in_another_language(typed: Typed) -> None:
    rubrics = typed.folder / "es"
    rubrics.mkdir()
    (rubrics / "situation.yaml").write_text(
        "name: situation\nkinds: [record]\nfields: [background, norm]\nreply: Situation\n"
        "question: Escribe una situación en la que alguien cumple la norma.\n"
    )
    (rubrics / "relevance.yaml").write_text(
        "name: relevance\nfields: [rule_of_thumb, story]\nquestion: ¿Trata de la regla?\n"
    )
    line = norm_line("peru", "eating", drafts={"yes": 1})
    line["norms"] = ["Se saluda a cada persona al entrar"]
    typed.write("atlas.jsonl", [line])
    spanish = json.dumps({**TEXTS, "story": "Ana hizo {{ norm }}. ¿Está bien lo que hizo Ana?"})
    script = [
        {"when": {"contains": "Escribe una situación"}, "reply": spanish},
        {
            "when": {"contains": "¿Trata de la regla?"},
            "reply": sound()[2]["reply"].replace(DEED, "Ana hizo {{ norm }}"),
        },
        *sound()[3:],
    ]
    model = typed.script("writer.yaml", script)
    go = ("generate", "norms", "atlas.jsonl", "-m", model, "--rubric", "./es", "-o", "n.jsonl")
    code, _, err = typed.text(*go)
    assert code == 0, err
    (made,) = lines(typed.read("n.jsonl"))
    assert made["story"].startswith("Ana hizo Se saluda a cada persona")


@pytest.mark.slow
def test_a_killed_run_is_resumed_to_the_same_bytes(judge: Shell) -> None:
    rows = [norm_line(c, "eating", drafts={"yes": 4, "no": 4}) for c in COUNTRIES[:12]]
    judge.write("atlas.jsonl", rows)
    apart = [says("derivation", "no", id=f"norms-0-{n}") for n in range(1, 97, 4)]
    slow = [{**entry, "delay": 0.02} for entry in [*apart, *sound()]]
    (judge.folder / "writer.yaml").write_text(json.dumps({"replies": slow}))
    go = ("generate", "norms", "atlas.jsonl", "-m", "scripted:writer.yaml", "--no-cache", "-q")
    assert judge(*go, "-o", "whole.jsonl").returncode == 0
    for count in (3, 30):
        process = judge.start(*go, "-o", "n.jsonl", *(["--resume"] if count > 3 else []))
        wait_for_lines(judge.folder / "n.jsonl", count)
        process.kill()
        process.communicate()
    assert judge(*go, "-o", "n.jsonl", "--resume").returncode == 0
    for name in ("", ".discarded.jsonl"):
        assert judge.read(f"n.jsonl{name}") == judge.read(f"whole.jsonl{name}")
    assert len(lines(judge.read("n.jsonl.discarded.jsonl"))) == 24
