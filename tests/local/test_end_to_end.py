"""`judge validate` on the real llama.cpp engine, with the small model that a package ships."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import gguf
import pytest

import judge
from judge.calibration.labels import CalibrationJob as LabelJob
from judge.configuration import resolve
from judge.local import adapter, store
from judge.local.teaching import teach

SMALL = "smollm2-135m"
DEFAULT = "qwen2.5-coder-1.5b"


def mails(folder: Path) -> str:
    """64 labelled mails, polite or curt."""
    polite = ("Thank you so much for your help.", "Would you please look at this?")
    curt = ("Do it over, and do it now.", "Stop wasting my time with this.")
    rows = []
    for number in range(64):
        kind = number % 2
        text = f"{(curt, polite)[kind][number // 2 % 2]} It is about invoice {number}."
        rows.append({"mail": text, "labels": {"question": ("no", "yes")[kind]}})
    labels = folder / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(labels)


@pytest.mark.slow
def test_labels_teach_a_local_model_offline(tmp_path: Path, low: Path) -> None:
    """Its own first token cannot tell these mails apart; its hidden state can."""
    labels = mails(tmp_path)
    setting = {"cache_dir": tmp_path / "cache", "ask": "Is this mail polite?", "on": ("mail",)}
    found = judge.calibrate(
        labels,
        out=tmp_path / "taught",
        controls=False,
        model=(f"local:{low}",),
        method="probe",
        **setting,
    )
    kappa = found.checks[0].judges[0].final.kappa
    assert kappa.value is not None and kappa.value > 0.9, kappa
    texts = ("Thank you so much for your help.", "Do it over, and do it now.")
    new = [{"mail": f"{text} It is about invoice 64."} for text in texts]
    new.append({"mail": "Rain."})
    profile = tmp_path / "taught" / "profile.json"
    by = {"model": (f"local:{low}",), "cache_dir": tmp_path / "cache"}
    taught = judge.validate(new, profile=profile, **by)
    assert [one.verdict for one in taught] == ["pass", "fail", "abstain"], (
        "the last is like none of them"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("error::FutureWarning:judge")
@pytest.mark.filterwarnings("error::FutureWarning:torch")
@pytest.mark.skipif(
    store.entry(SMALL).here is None, reason=f"judge models pull {SMALL} has not been run"
)
def test_what_an_adapter_was_taught_by_never_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line as `judge teach` says it: the adapter in llama.cpp, on the labels left.

    A few upper layers learn fast, which is enough for two kinds of mails.
    """
    # Transformers parses the file three times, and maps all names once for each tensor.
    for name in ("GGUFReader", "get_tensor_name_map"):
        monkeypatch.setattr(gguf, name, cache(getattr(gguf, name)))
    monkeypatch.setattr(adapter, "LOWER", 0.8)
    monkeypatch.setattr(adapter, "RATE", 1e-3)
    labels, asked = mails(tmp_path), {"ask": "Is this mail polite?", "on": ("mail",)}
    settings = resolve({"model": (f"local:{SMALL}",), **asked})
    taught = teach(LabelJob([labels]), settings, tmp_path / "polite.gguf", epochs=4)
    assert (taught.items, taught.kept, list(taught.problems)) == (45, 19, [])
    assert taught.model == f"local:{SMALL}+{tmp_path / 'polite.gguf'}"
    written = gguf.GGUFReader(tmp_path / "polite.gguf").tensors
    tensors = [tensor.name.split(".") for tensor in written]
    assert {int(number) for _, number, *_ in tensors} == {*range(24, 30)}, "the upper fifth"
    own = {**asked, "cache_dir": tmp_path / "cache", "method": "logprobs"}
    found = judge.calibrate(labels, controls=False, model=(taught.model,), **own)
    report = found.checks[0]
    assert (found.taught, report.items) == (45, 19)
    kappa = report.judges[0].final.kappa
    assert kappa.value is not None and kappa.value > 0.8, kappa
    assert "adapter" in report.judges[0].profile.binding.identity


@pytest.mark.model
@pytest.mark.skipif(store.entry(DEFAULT).here is None, reason="the 1.1 GB model is not here")
def test_the_default_model_tells_following_from_breaking(tmp_path: Path) -> None:
    rule = "Take off your shoes before you enter a home."
    stories = (
        "At Jo's door Noa took off her shoes and left them outside before she went in.",
        "Noa walked into Jo's living room in her muddy boots and kept them on all evening.",
    )
    records = [{"rule_of_thumb": rule, "story": text} for text in stories]
    own = {"rubric": "adherence", "check": "adherence", "cache_dir": tmp_path / "cache"}
    found = list(judge.validate(records, model=f"local:{DEFAULT}", **own))
    assert [one.verdict for one in found] == ["pass", "fail"]
    (vote,) = found[0].checks[0].votes
    assert vote.model == f"local:{DEFAULT}+adherence"


@pytest.mark.slow
@pytest.mark.skipif(store.entry(DEFAULT).here is None, reason="the 1.1 GB model is not here")
def test_the_packages_adapters_are_measured_at_what_they_are_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They were taught other wordings, with which the package's profiles were made."""
    story = {"story": "Ann waited. " * 300, "values": ["Patience--agree"]}
    norm = {"story": "x", "rule_of_thumb": "y"}
    assert judge.plan([story, norm], model=f"local:{DEFAULT}", rubric="adherence").most.replies
    assert "was taught another question" not in caplog.text
