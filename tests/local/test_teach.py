"""From a hundred labels to a judge, as a user types it: fitted, controlled, in one file."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import pytest

from judge.configuration import resolve
from judge.errors import UsageError
from judge.local.adapter import Trainer
from judge.local.teaching import Teaching, answered_with
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Problem, Record
from judge.run.rubrics import RubricSet
from tests.cli.conftest import lines
from tests.cli.typed import Typed
from tests.loopback import Answer, Asked, Loopback, embeds

pytestmark = pytest.mark.slow

WIDE = 256


def words(text: str) -> tuple[float, ...]:
    """A bag of words, each added to one number by its hash."""
    state = [0.0] * WIDE
    for word in re.findall(r"[a-z]+", text.lower()):
        drawn = hashlib.blake2b(word.encode(), digest_size=2).digest()
        state[drawn[0]] += 1.0 if drawn[1] % 2 else -1.0
    return tuple(state)


def server_of(state: Callable[[str], Sequence[float]]) -> Iterator[Loopback]:
    def script(asked: Asked) -> Answer:
        return embeds(state(asked.prompt))

    with Loopback(script) as server:
        yield server


@pytest.fixture
def bag(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """An embeddings server that gives every prompt its bag of words."""
    for server in server_of(words):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def mails(count: int = 120, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    kind = ("thank you so much", "would you please look", "grateful for a word", "sorry to ask")
    curt = ("do it now", "wrong again fix it", "useless start over", "stop wasting time")
    rows: list[dict[str, Any]] = []
    for number in range(count):
        polite = rng.random() < 0.5
        text = f"{rng.choice(kind if polite else curt)}, number {number}"
        answer = "yes" if polite else "no"
        rows.append({"id": f"m{number}", "mail": text, "labels": {"question": answer}})
    return rows


ASK = ("--ask", "Is this mail polite?", "--on", "mail")
PROBE = ("-m", "openai:bag", "--method", "probe", "-q")


def report(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "out" / "report.json").read_text())
    found: dict[str, Any] = told["checks"][0]["judges"][0]
    return found


def test_labels_make_a_profile_and_the_profile_alone_judges(bag: Loopback, typed: Typed) -> None:
    typed.write("labels.jsonl", mails())
    code, out, err = typed.text("calibrate", "labels.jsonl", *ASK, *PROBE, "-o", "out")
    assert code == 0, err
    assert "without mail: the judge reads it" in " ".join(out.split())
    new = [{"id": row["id"], "mail": row["mail"]} for row in mails(40, seed=7)]
    new.append({"id": "odd", "mail": " ".join(["zymurgy", "quark", "ostrich"] * 90)})
    typed.write("new.jsonl", new)
    by = ("--profile", "out/profile.json", *PROBE[:2])
    code, out, err = typed.text("validate", "new.jsonl", *by)
    assert code == 0, err
    found = {line["id"]: line["judge"] for line in lines(out.encode())}
    truth = {row["id"]: row["labels"]["question"] for row in mails(40, seed=7)}
    right = [found[id]["verdict"] == ("pass" if truth[id] == "yes" else "fail") for id in truth]
    assert sum(right) >= 36
    assert found["m0"]["checks"][0]["votes"][0]["method"] == "probe"
    assert found["odd"]["verdict"] == "abstain"
    assert "of 41 abstain, far from the labelled records" in " ".join(err.split())


def pairs(answer: Callable[[str, str], str], count: int = 120) -> list[dict[str, Any]]:
    rng, rows = random.Random(3), []
    for number in range(count):
        rule, deed = rng.choice(("greet", "hush")), rng.choice(("greeted", "hushed"))
        rows.append(
            {
                "id": f"p{number}",
                "rule": f"always {rule} at door {number}",
                "deed": f"Ann {deed} at door {number}",
                "labels": {"kept": answer(rule, deed)},
            }
        )
    return rows


KEPT = """
name: kept
question: Is the rule kept?
fields: [rule, deed]
control: rule
"""


def test_a_judge_that_ignores_the_rule_is_exposed(bag: Loopback, typed: Typed) -> None:
    """Its labels can be read off the deed alone, and so they are, also of a set turned round."""
    (typed.folder / "kept.yaml").write_text(KEPT)
    rows = pairs(lambda rule, deed: "yes" if deed == "greeted" else "no")
    typed.write("labels.jsonl", rows)
    other = {"yes": {"kept": "no"}, "no": {"kept": "yes"}}
    turned = [row | {"id": f"t{row['id']}", "labels": other[row["labels"]["kept"]]} for row in rows]
    typed.write("turned.jsonl", turned)
    sets = ("--contrast-set", "turned.jsonl", "--test-set", "turned.jsonl")
    run = ("calibrate", "labels.jsonl", "--rubric", "kept.yaml", *PROBE, *sets, "-o", "out")
    _, out, _ = typed.text(*run)
    told, controls = report(typed.folder), report(typed.folder)["controls"]
    assert told["calibrated"]["kappa"]["value"] > 0.9, out
    assert controls["blind"]["value"] > 0.9
    assert controls["stays"]["value"] > 0.9
    assert controls["contrast"]["value"] < -0.9 and not controls["looks"]
    assert "turned round agreement is no better than chance" in " ".join(out.split())
    # Without those whose text was fitted to under another id.
    assert told["test_sets"]["turned.jsonl"]["items"] == 60
    by = ("--profile", "out/profile.json", *PROBE[:2])
    _, _, err = typed.text("validate", "labels.jsonl", *by, "-o", "judged.jsonl")
    assert "not shown to look at rule" in " ".join(err.split())


def test_a_judge_that_reads_the_rule_is_not(monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    def read(prompt: str) -> list[float]:
        rule = 1.0 if "always greet" in prompt else -1.0 if "always hush" in prompt else 0.0
        deed = 1.0 if "Ann greeted" in prompt else -1.0
        door = random.Random(max(re.findall(r"door (\d+)", prompt), default=""))
        return [rule * deed, rule, deed, *(door.gauss() for _ in range(8))]

    (typed.folder / "kept.yaml").write_text(KEPT)
    kept = pairs(lambda rule, deed: "yes" if rule[0] == deed[0] else "no")
    typed.write("labels.jsonl", kept)
    other = {"greet": "hush", "hush": "greet"}
    turned = []
    for row in kept:
        _, rule, *rest = row["rule"].split()
        answer = "no" if row["labels"]["kept"] == "yes" else "yes"
        turned.append(
            {**row, "rule": " ".join(["always", other[rule], *rest]), "labels": {"kept": answer}}
        )
    typed.write("turned.jsonl", turned)
    for server in server_of(read):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        own = ("labels.jsonl", "--rubric", "kept.yaml", "--contrast-set", "turned.jsonl")
        typed("calibrate", *own, *PROBE, "-o", "out")
    controls = report(typed.folder)["controls"]
    assert controls["contrast"]["value"] == 1, "turned round, it turns with the rule"
    assert controls["looks"] and controls["above"]["value"] > 0.5


def test_a_group_on_both_sides_would_flatter(bag: Loopback, typed: Typed) -> None:
    """Every label is its team's, so that a judge learns the team: none is left for a new one."""
    rng = random.Random(5)
    team = {f"t{n}": rng.choice(("yes", "no")) for n in range(10)}
    rows = [
        {
            "id": f"m{n}",
            "team": name,
            "mail": " ".join([f"word{chr(97 + int(name[1:]))}"] * 3) + f" sent {n}",
            "labels": {"question": team[name]},
        }
        for n, name in enumerate(sorted(team) * 15)
    ]
    typed.write("labels.jsonl", rows)
    run = ("calibrate", "labels.jsonl", *ASK, *PROBE, "--no-controls", "--overwrite", "-o", "out")
    typed(*run)
    assert report(typed.folder)["calibrated"]["kappa"]["value"] > 0.8
    typed(*run, "--group", "team")
    assert abs(report(typed.folder)["calibrated"]["kappa"]["value"] or 0.0) < 0.6


def test_a_model_without_states_and_a_method_without_a_profile_are_told(typed: Typed) -> None:
    typed.write("labels.jsonl", mails(40))
    (typed.folder / "s.yaml").write_text(
        "replies: [{reply: {answer: 'yes', quote: null, reason: x}}]"
    )
    run = ("labels.jsonl", *ASK, "-m", "scripted:s.yaml", "--method", "probe")
    code, _, err = typed.text("calibrate", *run, "-q")
    assert code == 2 and "gives no hidden states" in err
    code, _, err = typed.text("validate", *run, "-q")
    assert code == 2 and "judge calibrate LABELS fits one" in " ".join(err.split())


TEACH = ("teach", "labels.jsonl", "-q", "-o", "mine.gguf")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((*ASK, "-m", "scripted:s.yaml"), "cannot be taught: name a model as local:"),
        (
            (*ASK, "-m", "local:smollm2-135m+none.gguf"),
            "the adapter 'none.gguf' is not a .gguf file",
        ),
        ((*ASK, "-m", "scripted:s.yaml", "-m", "scripted:t.yaml"), "judge teach takes one --model"),
        ((*ASK, "--check", "relevance", "-m", "scripted:s.yaml"), "no labels for relevance"),
        (
            (*ASK, "-o", "nowhere/mine.gguf"),
            "-o nowhere/mine.gguf: cannot be written; name one in a folder that is there",
        ),
        ((*ASK, "-o", "mine.bin"), "name a file that ends in .gguf"),
    ],
)
def test_what_cannot_be_taught_is_refused(typed: Typed, more: Sequence[str], told: str) -> None:
    typed.write("labels.jsonl", mails(40))
    for name in ("s.yaml", "t.yaml"):
        typed.script(name, [{"p_yes": 0.9}], method="logprobs")
    words = TEACH[: -2 if "-o" in more else None]
    code, _, err = typed.text(*words, *more)
    assert code == 2 and told in " ".join(err.split())
    assert not (typed.folder / "mine.gguf").exists()


def test_labels_with_one_answer_are_not_taught(typed: Typed) -> None:
    """The adapter would always say yes."""
    typed.write("labels.jsonl", [row for row in mails(40) if row["labels"]["question"] == "yes"])
    (typed.folder / "w.gguf").write_bytes(b"GGUF")
    code, _, err = typed.text(*TEACH, *ASK, "-m", "local:w.gguf")
    assert code == 2 and "the answer of all 11 items to teach by is 'yes'" in " ".join(err.split())


def test_an_adapter_that_is_asked_another_question_is_told(typed: Typed) -> None:
    """What it learnt is whether a mail is polite, and that it may answer here, too."""
    typed.write("labels.jsonl", mails(4))
    (typed.folder / "w.gguf").write_bytes(b"GGUF")
    digest = RubricSet.of(resolve({"ask": ASK[1:2], "on": ASK[3:]})).by_name["question"].digest
    writer = gguf.GGUFWriter(typed.folder / "a.gguf", "llama")
    writer.add_string("judge.rubric", digest)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    plan = ("plan", "labels.jsonl", "-m", "local:w.gguf+a.gguf")
    told = "judge: local:w.gguf+a.gguf was taught another question than question"
    assert told not in typed.text(*plan, *ASK)[2]
    assert told in typed.text(*plan, "--ask", "Is it about money?", "--on", "mail")[2]


def test_a_prompt_that_judging_would_refuse_is_not_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would cost hours, and the model never judges so long a text."""
    monkeypatch.setenv("JUDGE_LOCAL_CTX", "50")
    monkeypatch.setattr("judge.local.adapter.prompt_tokens", lambda _, text: [0] * len(text))
    monkeypatch.setattr(Trainer, "_tokens", lambda *_: [])
    trainer = Trainer.__new__(Trainer)
    trainer.tokenizer = SimpleNamespace(chat_template="x")
    trainer.config = SimpleNamespace(max_position_embeddings=2048)
    lessons: Any = [SimpleNamespace(messages="m" * n, record=f"r{n}") for n in (49, 50)]
    with pytest.raises(UsageError, match=r"record r50: the prompt has 50 tokens, .* context 50"):
        next(trainer.read(lessons, ("yes", "no")))


def test_weights_that_cannot_be_read_are_not_taught(typed: Typed) -> None:
    typed.write("labels.jsonl", mails(40))
    (typed.folder / "w.gguf").write_bytes(b"GGUF")
    code, _, err = typed.text(*TEACH, *ASK, "-m", "local:w.gguf")
    assert code == 2 and "w.gguf cannot be taught: transformers does not read it" in err


def test_lines_that_could_not_be_used_are_told_and_end_with_3(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Record.unreadable("labels.jsonl", 2, Problem("no label"))
    counts = (31, 9, [bad], 0.5, 0, 4)
    other = "people answered 'Is it long?'"
    made = Teaching("local:m+mine.gguf", "question", (), (), *counts, ("tone",), other)
    monkeypatch.setattr("judge.local.teaching.teach", lambda *_, **__: made)
    code, _, err = typed.text(*TEACH, *ASK, "-m", "local:m")
    assert code == 3 and "labels.jsonl:2: no label" in err and "4 rows without a label" in err
    assert "question: its labels are the answers to 'tone'" in err and f"judge: {other}\n" in err


@pytest.mark.parametrize(
    ("wrote", "told"),
    [
        (None, "no adapter was written; mine.gguf.part is of an earlier run"),
        (True, "the adapter so far is mine.gguf.part"),
        (False, "interrupted; no adapter was written\n"),
    ],
)
def test_an_interrupted_run_names_only_an_adapter_that_it_wrote(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, wrote: bool | None, told: str
) -> None:
    partly = typed.folder / "mine.gguf.part"
    partly.write_text("earlier")
    os.utime(partly, (1, 1))

    def teach(*_: Any, **__: Any) -> Teaching:
        if wrote is not None:
            partly.unlink()
        if wrote:
            partly.write_text("made")
        raise KeyboardInterrupt

    monkeypatch.setattr("judge.local.teaching.teach", teach)
    code, _, err = typed.text(*TEACH, *ASK, "-m", "local:m")
    assert code == 130 and told in err


def test_a_question_that_does_not_settle_the_answer_is_not_taught() -> None:
    rubrics = builtin()
    assert answered_with(rubrics["adherence"]) == {"yes": 0, "no": 1}
    with pytest.raises(UsageError, match="does not settle the answer"):
        answered_with(rubrics["label_correctness"])
    pair = "name: better\nquestion: Which is kinder?\ncompare: [old, new]\npass: new\n"
    with pytest.raises(UsageError, match="better has no question that one first token answers"):
        answered_with(Rubric.from_text(pair))


@pytest.mark.parametrize(
    ("asked", "next_words"),
    [
        ("--ask 'Is it polite?' --on mail --answers 1,2 --pass '>= 2'", None),
        ("--rubric a.yaml --rubric 'my b.yaml' --check b --map 'mail=the text'", None),
        ("", "--check relevance"),
    ],
)
def test_what_to_do_next_puts_the_same_question_again(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, asked: str, next_words: str | None
) -> None:
    made = Teaching("local:m+my a.gguf", "relevance", (), (), 9, 3, (), 0.5, 0, 0, (), None)
    monkeypatch.setattr("judge.local.teaching.teach", lambda *_, **__: made)
    for name in ("a", "my b"):
        text = f"name: {name[-1]}\nquestion: Is it polite?\nfields: [mail]\nanswers: [yes, no]\n"
        (typed.folder / f"{name}.yaml").write_text(text)
    labels = ("my labels.jsonl", f"{'long' * 20}.jsonl")
    code, _, err = typed.text(
        "teach", *labels, *shlex.split(asked), "--group", "a writer", "-o", "my a.gguf"
    )
    assert code == 0, err
    end = ["--group", "a writer", "-m", "local:m+my a.gguf", "-o", "taught"]
    command = shlex.split(err.partition("next: ")[2])
    assert command == ["judge", "calibrate", *labels, *shlex.split(next_words or asked), *end]


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_an_adapter_has_its_rows_in_the_order_of_llama_cpps_weights(
    tmp_path: Path, architecture: str
) -> None:
    """Of its llama models alone the halves of each head's turns stand in turn, in q and k."""
    import gguf
    import torch

    torch.manual_seed(0)
    trainer = object.__new__(Trainer)
    trainer.architecture = architecture
    trainer.config = SimpleNamespace(
        num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2
    )
    heads = {"q_proj": 4, "k_proj": 2, "v_proj": 2, "down_proj": 1}
    trainer.added = {
        (0, name): SimpleNamespace(down=torch.randn(4, 64), up=torch.randn(16 * count, 4))
        for name, count in heads.items()
    }
    trainer.write(tmp_path / "a.gguf", {})
    written = {t.name: torch.tensor(t.data) for t in gguf.GGUFReader(tmp_path / "a.gguf").tensors}
    names = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "down_proj": "ffn_down"}
    for name, count in heads.items():
        addition = trainer.added[0, name]
        wanted = addition.up @ addition.down
        if architecture == "llama" and name in ("q_proj", "k_proj"):
            order = [16 * h + 8 * j + i for h in range(count) for i in range(8) for j in range(2)]
            wanted = wanted[order]
        lora_a, lora_b = (written[f"blk.0.{names[name]}.weight.lora_{side}"] for side in "ab")
        assert torch.allclose(lora_b.float() @ lora_a.float(), wanted, atol=0.05), name


def test_the_updates_start_from_numbers_of_the_seed(tmp_path: Path) -> None:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tests.local.made_gguf import decision_model

    weights = decision_model(tmp_path / "m.gguf")
    first, second, other = (
        next(iter(Trainer(weights, seed).added.values())).down for seed in (0, 0, 1)
    )
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_the_loss_that_is_shown_is_the_running_mean_over_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a model that never learns between two words it is ln 2 at each step."""
    torch = pytest.importorskip("torch")
    trainer = object.__new__(Trainer)
    weight = torch.nn.Parameter(torch.zeros(1))
    trainer.added = {
        (0, "q_proj"): SimpleNamespace(down=weight, up=torch.nn.Parameter(torch.zeros(1)))
    }
    trainer.device = "cpu"
    trainer._low = [torch.zeros(3)] * 40
    monkeypatch.setattr(Trainer, "_logits", lambda _, part: torch.zeros(len(part), 2) + 0 * weight)
    examples: Any = [SimpleNamespace(word=n % 2) for n in range(40)]
    told = list(trainer.teach(examples, 4.0, 0))
    assert [step for step, _, _ in told] == [*range(1, told[0][1] + 1)] and len(told) > 2
    assert [loss for *_, loss in told] == pytest.approx([math.log(2)] * len(told))
