"""The pages' server and its refusals, and the file of answers, without a browser."""

from __future__ import annotations

import html
import http.client
import json
import shlex
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from judge.calibration.people import agreement_of
from judge.configuration import resolve
from judge.errors import UsageError
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import Annotation, LabelledItem, read_labels
from judge.records.labels.own import label_key
from judge.report.sheet import PersonQuestion
from judge.run.decisions import Decisions, decide
from judge.run.job import Job
from judge.run.output import Sink
from judge.stats.intervals import score_limits
from judge.web import label, page_server, review
from judge.web.answers import AnswerFile, Place
from judge.web.figures import among_people, half_width, progress
from judge.web.page_server import keys
from judge.web.session import PageQuestion, Session
from tests.web.conftest import ASK, Pages

MAIL = {"id": "m1", "email": "Dear Ann"}
MAILS = [{"id": f"m{n}", "email": f"{'Dear' if n < 18 else 'Fool'} {n}"} for n in range(20)]


OPEN = {"check": "polite", "by": "final", "verdict": "abstain", "round": 1, "votes": []}


def asked(
    address: str, path: str = "", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content of an answer."""
    parts = urlsplit(address)
    link = http.client.HTTPConnection(parts.netloc, timeout=20)
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    link.request("GET" if body is None else "POST", parts.path + path, body, names)
    answer = link.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


@pytest.mark.slow
def test_only_the_page_itself_is_answered(pages: Pages) -> None:
    pages.write("mails.jsonl", [MAIL])
    _, address = pages.start("label", "mails.jsonl", *ASK, "-o", "labels.jsonl")
    host = urlsplit(address).netloc
    body = json.dumps({"question": 0, "answer": 0, "why": ""}).encode()
    own = {"Origin": f"http://{host}", "Content_Type": "application/json"}
    status, headers, page = asked(address)
    assert status == 200 and b"Dear Ann" in page and "Set-Cookie" not in headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    refused = [
        asked(address, Host="evil.example"),
        asked(address, Host=f"evil.example:{host.partition(':')[2]}"),
        asked(address.replace(address[-6:-2], "AAAA")),
        asked(f"http://{host}/"),
        asked(address, "answer", body, **{**own, "Host": "evil.example"}),
        asked(address, "answer", body, Content_Type="application/json"),
        asked(address, "answer", body, **{**own, "Origin": "http://evil.example"}),
        asked(address, "answer", body, **{**own, "Origin": "null"}),
        asked(address, "answer", body, **{**own, "Content_Type": "text/plain"}),
        asked(address, "undo", b"{}", **{**own, "Origin": "http://localhost:1"}),
        asked(address, "answer", b"[" * (9 << 20), **own),
        asked(address, "answer", b"[" * 100_000, **own),
        asked(address, "answer", body.replace(b"0", b"7"), **own),
        asked(address, "../page.py"),
        asked(address, "answer", b"[]", **own, Content_Encoding="gzip"),
    ]
    assert [status for status, *_ in refused] == [*[403] * 10, 413, 400, 400, 404, 400]
    assert all("Content-Security-Policy" in headers for _, headers, _ in refused)
    assert not (pages.folder / "labels.jsonl").exists()
    with socket.create_connection((host.partition(":")[0], int(host.partition(":")[2]))) as link:
        link.sendall(f"OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b" 403 " in link.recv(4096)
    other = {**own, "Content_Type": "application/json; charset=none"}
    status, _, page = asked(address, "answer", body, **other)
    assert status == 200 and b"All questions are answered" in page
    assert pages.lines("labels.jsonl")[0]["id"] == "m1"
    (pages.folder / "labels.jsonl").unlink()  # As `git stash` does.
    page = asked(address)[2]
    assert b"0 of 1 answered" in page and b"Dear Ann" in page, "the page shows what the file has"
    assert asked(address, "answer", body, **own)[0] == 200
    assert len(pages.lines("labels.jsonl")) == 1
    (pages.folder / "labels.jsonl").rename(pages.folder / "kept.jsonl")
    (pages.folder / "labels.jsonl").mkdir()
    for status, _, told in (asked(address), asked(address, "answer", body, **own)):
        assert status == 507 and b"labels.jsonl cannot be read: Is a directory" in told
    taken = pages("label", "mails.jsonl", *ASK, "-o", "kept.jsonl", "--port", host.split(":")[1])
    assert f"--port {host.split(':')[1]}: Address already in use; name another" in taken.stderr


@pytest.mark.slow
def test_the_page_names_no_machine_and_proposes_what_one_or_two_people_need(pages: Pages) -> None:
    """After one person the page proposes calibrate and the command for a second person, who is
    asked about the same record; after two it proposes agreement. `root` is not used as a name."""
    pages.env["LOGNAME"] = "root"
    pages.write("mails.jsonl", MAILS)

    def ended(*words: str) -> str:
        _, address = pages.start(*words)
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        body = json.dumps({"question": 0, "answer": 0, "why": ""}).encode()
        told = asked(address)[2] + asked(address, "answer", body, **own)[2]
        return html.unescape(told.decode())

    out = ("-o", "labels.jsonl")
    page = ended("label", "mails.jsonl", *ASK, "--sample", "1", "--seed", "5", *out)
    assert "root" not in page and "--annotator NAME</code>" in page
    assert "judge calibrate labels.jsonl" in page and "judge agreement" not in page
    second = page[page.index("judge label ") :].partition("</pre>")[0]
    page = ended(*shlex.split(second.replace("NAME", "bo"))[1:])
    assert "judge agreement labels.jsonl" in page and "judge label" not in page
    unnamed, named = (process.stderr.readline() for process in pages.running if process.stderr)
    assert "saved under the name annotator; --annotator NAME" in unnamed and "name" not in named
    ann, bo = pages.lines("labels.jsonl")
    assert ann["id"] == bo["id"]
    assert [*ann["labels"]["question"], *bo["labels"]["question"]] == ["annotator", "bo"]


@pytest.mark.slow
def test_answers_to_another_question_do_not_count_for_this_one_in_silence(pages: Pages) -> None:
    """The page, calibrate and validate name the question that people were asked; they say nothing
    where it is the same, or where the labels do not tell it."""
    pages.write("mails.jsonl", MAILS[:2])
    reply = {"quote": None, "reason": "So.", "answer": "yes"}
    (pages.folder / "j.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))

    def page(question: str) -> str:
        label = ("label", "mails.jsonl", "--ask", question, "--name", "fit", "-o", "l.jsonl")
        process, address = pages.start(*label, "--annotator", "ann")
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        told = asked(address)[2]
        asked(
            address, "answer", json.dumps({"question": 0, "answer": 0, "why": ""}).encode(), **own
        )
        process.terminate()
        assert process.wait(60) == 0
        return html.unescape(told.decode())

    def told(question: str, labels: str) -> set[str]:
        words = ("--ask", question, "--name", "fit", "-m", "scripted:j.yaml")
        run = ("validate", "mails.jsonl", *words, "--decisions", labels, "-o", "o.jsonl")
        done = [pages(*run, "--overwrite"), pages("calibrate", labels, *words, "--no-controls")]
        lines = [line for one in done for line in one.stderr.splitlines()]
        return {line.removeprefix("judge: ") for line in lines if "people answered" in line}

    page("Is it short?")
    note = "l.jsonl: people answered 'Is it short?' (1 of 1 answer), and fit asks 'Is it long?'"
    assert (
        "people answered" not in page("Is it short?") and told("Is it short?", "l.jsonl") == set()
    )
    pages.write("l.jsonl", pages.lines("l.jsonl")[:1])
    assert told("Is it long?", "l.jsonl") == {note, f"--decisions {note}"}
    assert f"{note}. For a new question stop here" in page("Is it long?")
    by_hand = {
        name: part for name, part in pages.lines("l.jsonl")[0].items() if name != "annotators"
    }
    pages.write("by_hand.jsonl", [by_hand])
    assert told("Is it long?", "by_hand.jsonl") == set()


@pytest.mark.slow
def test_compared_fields_have_no_names_and_an_order_for_each_annotator(pages: Pages) -> None:
    """Two people always choose the first: their labels name the fields that stood there. `--id`
    names the records, and the command that the page proposes measures a judge on the labels."""
    named = {name: {f"p{n}": f"{name} of {n}" for n in range(16)} for name in ("gpt", "opus")}
    pages.write("ab.jsonl", [{"nr": n, **{m: named[m][n] for m in named}} for n in named["gpt"]])
    words = ("--compare", "gpt,opus", "--tie", "--ask", "Which is better?", "--id", "nr")
    command, chosen = "", dict[str, list[str]]()
    for who in ("ann", "bo"):
        label = ("label", "ab.jsonl", *words, "-o", "l.jsonl", "--annotator", who)
        process, address = pages.start(*label)
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        page, firsts = asked(address)[2].decode(), {}
        for number in range(16):
            shown = page.partition('class="material"')[2].partition('class="leave"')[0]
            name = shown.partition('Record <bdi lang="">')[2].partition("<")[0]
            first, second = shown.index("answer 1</bdi></h3>"), shown.index("answer 2</bdi></h3>")
            firsts[name] = "gpt" if first < shown.index(named["gpt"][name]) < second else "opus"
            assert named["opus"][name] in shown and "gpt</bdi>" not in shown
            assert shown.count("answer 1</bdi> <kbd>1") == shown.count("answer 2</bdi> <kbd>2") == 1
            body = json.dumps({"question": number, "answer": 0, "why": ""}).encode()
            page = asked(address, "answer", body, **own)[2].decode()
        command = html.unescape(page).partition("<pre>judge calibrate ")[2].partition("</pre>")[0]
        process.terminate()
        assert process.wait(60) == 0
        lines = [line for line in pages.lines("l.jsonl") if who in line["labels"]["question"]]
        labels = {line["nr"]: line["labels"]["question"][who] for line in lines}
        assert labels == firsts and {*labels.values()} == {"gpt", "opus"}
        chosen[who] = [labels[name] for name in named["gpt"]]
    assert chosen["ann"] != chosen["bo"]
    reply = {"quote": None, "reason": "So.", "answer": "1"}
    (pages.folder / "j.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))
    command = command.replace("PROVIDER:MODEL", "scripted:j.yaml")
    done = pages("calibrate", *shlex.split(command), "--no-controls")
    assert "16 items about 16 records" in done.stdout, done.stderr


def answers_in(path: Path) -> dict[tuple[str, int], dict[str, str]]:
    items = [item for item in read_labels(str(path)) if isinstance(item, LabelledItem)]
    return {(i.record.id, i.number): {a.annotator: a.answer for a in i.annotations} for i in items}


def test_answers_of_two_people_stand_as_they_were_given_last(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    ann, bo = AnswerFile(path, "ann"), AnswerFile(path, "bo")
    fields = {"id": "r", "text": "One.", "values": ["a", "b", "c"], "label": "red"}
    ann.refresh()
    place = Place(label_key(fields), "says", 2)
    ann.put(place, Annotation("ann", "yes", why="so"), fields, entries=3)
    bo.refresh()
    bo.put(place, Annotation("bo", "no"), fields, entries=3)
    ann.put(place._replace(number=3), Annotation("ann", "no"), fields, entries=3, weight=2.5)
    ann.put(place, Annotation("ann", "unsure"), fields, entries=3)
    assert [p.number for p in ann.own] == [3, 2], "the last one is taken back first"
    bo.put(place, None, fields, entries=3)
    with path.open("ab") as file:
        file.write(b'{"id": "r", "labels": {"says": {"ann": [')
    again = AnswerFile(path, "ann")
    again.put(place._replace(number=1), Annotation("ann", "yes"), fields, entries=3)
    assert answers_in(path) == {
        ("r", 1): {"ann": "yes"},
        ("r", 2): {"ann": "unsure"},
        ("r", 3): {"ann": "no"},
    }
    assert AnswerFile(path, "ann").given == {**again.given, "bo": {}}
    again.put(place, Annotation("ann", "no", asked="Is {{ value }} there?"), fields, entries=3)
    labels = [item for item in read_labels(str(path)) if isinstance(item, LabelledItem)]
    questions = {item.number: item.annotations[0].asked for item in labels}
    assert questions == {1: None, 2: "Is {{ value }} there?", 3: None}, "each answer has its own"
    with pytest.raises(UsageError, match="another text of record 'r'"):
        again.refuse_other_text("0", {"id": "r"})
    before = {name: dict(answers) for name, answers in again.given.items()}
    foreign = ({"labels": ["yes"]}, {"annotators": ["ann"]}, {"annotators": {"ann": "so"}})
    for line in foreign:  # appended by another program while the page is open
        with path.open("a") as file:
            file.write(json.dumps({**fields, "labels": {"says": {"ann": "no"}}, **line}) + "\n")
        again.refresh()
        assert again.given == before
    with pytest.raises(UsageError, match=r"line 8: field 'labels' must be an object"):
        AnswerFile(path, "ann")
    path.write_text('{"id": "x", "text": "no labels"}\n')
    with pytest.raises(UsageError, match=r"line 1: .*name another file"):
        AnswerFile(path, "ann")


def test_answers_stand_beside_those_of_a_program_that_writes_the_file_anew(tmp_path: Path) -> None:
    """In its place, as a longer line without an end; or as a file of the same length."""
    path, fields = tmp_path / "labels.jsonl", {"id": "r", "text": "One."}
    ann, place = AnswerFile(path, "ann"), Place(label_key(fields), "kind")
    ann.put(place, Annotation("ann", "yes"), fields)
    path.write_text(json.dumps({**fields, "labels": {"kind": {"bo": "no", "cy": "unsure"}}}))
    ann.put(place, Annotation("ann", "no"), fields)
    assert answers_in(path) == {("r", 0): {"bo": "no", "cy": "unsure", "ann": "no"}}
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes().replace(b'"bo"', b'"di"'))
    other.replace(path)
    ann.refresh()
    assert ann.given.keys() == {"ann", "cy", "di"}


def test_a_question_may_be_about_another_list_than_its_kind_s(tmp_path: Path) -> None:
    fields = {"story": "Ann bowed.\nBo did not.\nCy left.", "values": ["Bow", "Leave"]}
    ann = AnswerFile(path := tmp_path / "labels.jsonl", "ann")
    ann.put(Place(label_key(fields), "said", 3), Annotation("ann", "yes"), fields, entries=3)
    again = AnswerFile(path, "ann").own
    assert [place.number for place in again] == [3] and again == ann.own
    assert [*answers_in(path).values()] == [{"ann": "yes"}], "judge calibrate reads it, too"


def test_a_digit_s_key_gives_that_digit() -> None:
    scale = tuple(map(str, range(11)))
    assert keys(scale) == {**{n: n for n in scale}, "10": ""}
    assert keys(("-1", "0", "1", "none")) == {"-1": "", "0": "0", "1": "1", "none": "4"}
    assert keys(("yes", "no", "10")) == {"yes": "y 1", "no": "n 2", "10": "3"}


def test_an_unsure_answer_is_no_label(tmp_path: Path) -> None:
    """Of four answers one is unsure: three are labels, and five of the six will be."""
    polite = Rubric.from_dict({"name": "polite", "question": "Is it polite?"})
    records = [{"id": f"m{n}", "text": "Hello."} for n in range(6)]
    questions = [
        PageQuestion(PersonQuestion(Record("", n, fields), polite, 0, polite.question), fields)
        for n, fields in enumerate(records)
    ]
    session = Session(questions, AnswerFile(tmp_path / "l.jsonl", "ann"), "Label")
    for number, choice in enumerate((0, -1, 1, 0)):
        session.answer(number, choice, "")
    told = progress(session)
    assert told.startswith("4 of 6 answered; 3 labels measure a judge's agreement to ± ")
    assert f"± {100 * half_width(3):.0f} points, all 5 to ± {100 * half_width(5):.0f} (" in told


def test_the_labels_of_each_check_measure_its_judge_alone(tmp_path: Path) -> None:
    """Of one check two questions are asked, of the other four."""
    fields = [{"id": f"m{n}", "text": "Hello."} for n in range(4)]
    questions = [
        PageQuestion(PersonQuestion(Record("", n, one), rubric, 0, rubric.question), one)
        for name, count in (("polite", 2), ("short", 4))
        for rubric in [Rubric.from_dict({"name": name, "question": f"Is it {name}?"})]
        for n, one in enumerate(fields[:count])
    ]
    session = Session(questions, AnswerFile(tmp_path / "l.jsonl", "ann"), "Label")
    for number in range(3):
        session.answer(number, 0, "")
    one, two, four = (f"± {100 * half_width(n):.0f}" for n in (1, 2, 4))
    assert progress(session) == (
        f"3 of 6 answered; polite: 2 labels measure a judge's agreement to {two} points; short: 1 "
        f"label measures a judge's agreement to {one} points, all 4 to {four} (if it agrees 90% of "
        "the time)"
    )


def test_the_agreement_on_the_page_is_that_of_judge_agreement(tmp_path: Path) -> None:
    """Three agree about a record that stands for four, two of three about another: of the pairs
    4 * 1 + 1 * 1/3 of 5. The interval is over 25 / 17 records, not over six pairs."""
    polite = Rubric.from_dict({"name": "polite", "question": "Is it polite?"})
    questions = [
        PageQuestion(
            PersonQuestion(Record("", n, fields), polite, 0, polite.question), fields, None, weight
        )
        for n, (weight, fields) in enumerate(((4.0, {"id": "a"}), (1.0, {"id": "b"})))
    ]
    for who, choices in (("ann", (0, 0)), ("bo", (0, 0)), ("cy", (0, 1))):
        session = Session(questions, AnswerFile(tmp_path / "l.jsonl", who), "Label")
        for number, choice in enumerate(choices):
            session.answer(number, choice, "")
    (told,) = among_people(session)
    low, high = (100 * limit for limit in score_limits(13 / 15, 25 / 17))
    assert f"the same answer 86.7% of the time ({low:.1f}% to {high:.1f}%), each weighted" in told
    (check,) = agreement_of([str(tmp_path / "l.jsonl")], resolve({})).checks
    assert check.overall.measures["pairwise"].value == pytest.approx(13 / 15)


def test_scores_of_two_people_have_a_weighted_kappa_on_the_page(tmp_path: Path) -> None:
    """Never the same score and never more than one apart: weighted kappa is 0.6 (1 - 1 / 2.5)."""
    tone = Rubric.from_dict({"name": "tone", "question": "How kind?", "answers": [1, 2, 3, 4],
                             "pass": ">= 3"})  # fmt: skip
    records = [{"id": f"m{n}", "text": f"{n}"} for n in range(4)]
    questions = [
        PageQuestion(PersonQuestion(Record("", n, fields), tone, 0, tone.question), fields)
        for n, fields in enumerate(records)
    ]
    for who, choices in (("ann", (0, 1, 2, 3)), ("bo", (1, 0, 3, 2))):
        session = Session(questions, AnswerFile(tmp_path / "l.jsonl", who), "Label")
        for number, choice in enumerate(choices):
            session.answer(number, choice, "")
    (told,) = among_people(session)
    assert ", weighted κ 0.60 (" in told


def test_a_figure_that_takes_long_does_not_keep_the_annotator_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed after each answer while it is quick; later only after twenty times its own time, and
    when no question is left."""
    polite = Rubric.from_dict({"name": "polite", "question": "Is it polite?"})
    asked = PersonQuestion(Record("", 0, {"text": "Hello."}), polite, 0, polite.question)
    question = PageQuestion(asked, {"text": "Hello."})
    session = Session([question], AnswerFile(tmp_path / "l.jsonl", "ann"), "Label")
    page, clock, cost, made = page_server._Page(session), [100.0], [0.1], []

    def computed(_: Session) -> list[str]:
        made.append(clock[0])
        clock[0] += cost[0]
        return [f"figure {len(made)}"]

    monkeypatch.setattr(page_server, "monotonic", lambda: clock[0])
    monkeypatch.setattr(page_server.figures, "among_people", computed)
    assert [page._among_people() for _ in range(2)] == [["figure 1"], ["figure 2"]]
    cost[0] = 1.0
    assert [page._among_people() for _ in range(3)] == [["figure 3"]] * 3
    clock[0] += 19
    assert page._among_people() == ["figure 3"]
    clock[0] += 2
    assert [page._among_people() for _ in range(2)] == [["figure 4"]] * 2
    session.answer(0, 0, "")
    assert page._among_people() == ["figure 5"]


def test_a_judged_line_is_drawn_by_the_least_sure_of_the_checks_asked_about() -> None:
    checks = [
        {"check": name, "verdict": "pass", "probability": chance}
        for name, chance in (("a", 0.97), ("b", 0.45), ("c", 0.03))
    ]
    record = Record("o.jsonl", 1, {"judge": {"verdict": "fail", "checks": checks}})
    # Bands end at 0.1, 0.5 and 0.9.
    bands = {asked: label._of_judge(record, asked)[1] for asked in ("abc", "ac", "a", "c", "d")}
    assert bands == {"abc": 1, "ac": 3, "a": 3, "c": 0, "d": -1}


@pytest.mark.slow
def test_a_sample_of_judged_records_weighs_by_verdict_and_tells_of_the_judge(pages: Pages) -> None:
    """18 pass and 2 fail, of which 2 and 2 are drawn; a person passes one that failed: agreement
    with the judge is (2 * 9 + 1) of 20 records."""
    pages.write("mails.jsonl", MAILS)
    reply = {"quote": None, "reason": "A kind word.", "answer": "yes"}
    rude = {"reply": {**reply, "reason": "It insults.", "answer": "no"}}
    replies = [{"when": {"contains": "Dear"}, "reply": reply}, rude]
    (pages.folder / "j.yaml").write_text(json.dumps({"replies": replies}))
    assert (
        pages("validate", "mails.jsonl", *ASK, "-m", "scripted:j.yaml", "-o", "j.jsonl").returncode
        == 0
    )
    words = ("label", "j.jsonl", *ASK, "--sample", "4", "-o", "labels.jsonl", "--annotator", "ann")
    process, address = pages.start(*words)
    own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
    page, wrong = asked(address)[2], 0
    assert b"0 of 4 answered" in page
    for number in range(4):
        shown = page.decode().partition('class="ask"')[0]
        assert "insults" not in shown and "kind word" not in shown
        said = 0 if "Dear" in shown or not wrong else 1
        wrong += "Fool" in shown
        body = json.dumps({"question": number, "answer": said, "why": "\ud800"}).encode()
        status, _, page = asked(address, "answer", body, **own)
        assert status == 200 and b"What your answers say about the judge" in page
    assert b"agrees with you 95.0% of the time" in page and b"It insults." in page
    # Weights 9, 9, 1, 1 tell as much as 400 / 164 = 2.44 records of one weight.
    assert "a judge's agreement to ± 34 points" in html.unescape(page.decode())
    assert b"each weighted by the number" in page and b'the judge says <bdi lang="">no' in page
    labels = pages.lines("labels.jsonl")
    weights = {line["id"]: line["annotators"]["ann"]["weight"] for line in labels}
    assert sorted(weights.values()) == [1, 1, 9, 9] and {weights["m18"], weights["m19"]} == {1}
    assert all(line.keys() == {"id", "email", "labels", "annotators"} for line in labels)
    written = (pages.folder / "labels.jsonl").read_bytes()
    (pages.folder / "labels.jsonl").unlink()
    assert asked(address)[0] == 200, "the latest answer is no longer there"
    process.terminate()
    assert process.wait(60) == 0
    (pages.folder / "labels.jsonl").write_bytes(written)
    calibrate = ("calibrate", "labels.jsonl", *ASK, "-m", "scripted:j.yaml")
    (check,) = json.loads(pages(*calibrate, "--json").stdout)["checks"]
    assert check["judges"][0]["uncalibrated"]["accuracy"]["value"] == pytest.approx(0.95)
    done = pages(*calibrate, "--guarantee", "0.9")
    assert done.returncode == 2 and "different weights" in done.stderr
    pages.write("mails.jsonl", [{**mail, "email": "Other"} for mail in MAILS])
    done = pages("label", "mails.jsonl", *ASK, "-o", "labels.jsonl")
    assert done.returncode == 2 and "another text of record" in done.stderr
    for more, why in (
        ((), "name -o"),
        (("-o", "mails.jsonl"), "is the input"),
        (("-o", "none/l.jsonl"), "there is no folder none"),
        (("-o", "l.jsonl", "--together", "email"), "--together is for a sheet"),
        (("--sheet", "s.csv", "--annotator", "ann"), "--annotator is for a page: it needs -o"),
        (("--sheet", "s.csv", "--no-open"), "--open is for a page"),
    ):
        done = pages("label", "mails.jsonl", *ASK, *more)
        assert done.returncode == 2 and why in done.stderr


@pytest.mark.parametrize(
    ("records", "columns", "left_out"),
    [
        ([("1", "2"), ("2", "1")], {"id": "nr"}, ""),
        ([("1", "1"), ("2", "1")], {}, "line 2 of m.jsonl: an earlier record has id '1'"),
    ],
)
def test_a_page_leaves_out_only_records_of_an_earlier_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    records: list[tuple[str, str]],
    columns: dict[str, str],
    left_out: str,
) -> None:
    """With --id another column is the name, and the field `id` is a field like others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(label, "serve", lambda *page: None)
    rows = [{"nr": nr, "id": id, "mail": f"Mail {nr}."} for nr, id in records]
    Path("m.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    settings = resolve({"ask": ("Polite?",), "on": ("mail",), **columns})
    job = Job(inputs=["m.jsonl"])
    told = label.label(Path("l.jsonl"), job, settings, annotator="ann", ready=print)
    assert (told.of, "".join(told.reasons)) == (1 if left_out else 2, left_out)


def test_a_judge_is_compared_by_its_answer_to_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that failed in the run, by --pass no, agrees with a person's yes. The answer to another
    question of this name is not compared, which the page says."""
    monkeypatch.chdir(tmp_path)
    evidence = [{"verdict": "fail", "answer": "yes"}]
    check = {**OPEN, "check": "question", "verdict": "fail", "evidence": evidence}
    judged = {"verdict": "fail", "workflow": "record", "fingerprint": "a" * 16, "checks": [check]}
    Path("o.jsonl").write_text(json.dumps({"mail": "Fool.", "judge": judged}) + "\n")
    runs = {"a" * 16: {"questions": {"question": "Is it rude?"}}}
    Path("o.jsonl.run.json").write_text(json.dumps(runs))
    shown: list[Session] = []
    monkeypatch.setattr(label, "serve", lambda session, *_: shown.append(session))
    for ask, agrees in (("Is it rude?", (True, False)), ("Is it kind?", (None, None))):
        settings = resolve({"ask": (ask,), "on": ("mail",)})
        told = label.label(
            Path("l.jsonl"), Job(["o.jsonl"]), settings, annotator="ann", ready=print
        )
        (question,) = shown[-1].questions
        assert (question.agrees("yes"), question.agrees("no")) == agrees
        assert question.agrees("unsure") is None
        notes = ["question: the judge answered 'Is it rude?', and is not compared with people"]
        assert shown[-1].all_notes == told.notes == ([] if agrees[0] else notes)


def test_a_page_goes_on_where_another_column_names_records_of_one_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read back by that column, also beside the whole records."""
    monkeypatch.chdir(tmp_path)
    rows = [{"nr": f"n{n}", "id": "same", "mail": f"Mail {n}."} for n in range(2)]
    Path("m.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    settings, job = resolve({"ask": ("Polite?",), "on": ("mail",), "id": "nr"}), Job(["m.jsonl"])
    monkeypatch.setattr(label, "serve", lambda page, *_: page.answer(page.current, 0, ""))
    for who, answered in (("ann", 1), ("ann", 2), ("bo", 1)):
        told = label.label(Path("l.jsonl"), job, settings, annotator=who, ready=print)
        assert told.answered == answered
    assert told.closing[0][1] == "judge agreement l.jsonl --id nr"
    for records in (None, ["m.jsonl"]):
        report = agreement_of(["l.jsonl"], resolve({"id": "nr"}), records=records)
        assert (report.unreadable, report.checks[0].overall.labels) == (0, 3)
    assert [line["nr"] for line in report.majorities] == ["n0", "n1"]


def test_a_drawn_record_stands_for_those_with_the_same_fields_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten equal failures and ten passes four each are drawn: five questions about 20 records."""
    monkeypatch.chdir(tmp_path)
    asked: list[PageQuestion] = []
    monkeypatch.setattr(label, "serve", lambda session, *_: asked.extend(session.questions))
    judged = {"verdict": "fail", "fingerprint": "f", "checks": []}
    lines = [{"mail": "Fool.", "judge": judged}] * 10
    lines += [{"mail": f"Dear {n}.", "judge": {**judged, "verdict": "pass"}} for n in range(10)]
    Path("o.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    settings = resolve({"ask": ("Polite?",), "on": ("mail",)})
    job = Job(inputs=["o.jsonl"], sample=8)
    told = label.label(Path("l.jsonl"), job, settings, annotator="ann", ready=print)
    weights = {question.fields["mail"]: question.weight for question in asked}
    assert sum(map(float, filter(None, weights.values()))) == 20
    assert (weights["Fool."], told.of) == (10, 5)
    assert told.notes == ["asked once about records with the same fields; questions saved: 3"]


@pytest.mark.slow
def test_a_review_says_what_cannot_be_shown(pages: Pages) -> None:
    pages.write("e.jsonl", [{"id": "e", "email": ""}])
    (pages.folder / "j.yaml").write_text('{"replies": []}')
    pages("validate", "e.jsonl", *ASK, "-m", "scripted:j.yaml", "-o", "o.jsonl")
    done = pages("review", "o.jsonl")
    assert done.returncode == 0, done.stderr
    assert "1 record left out; the record has no text in email" in done.stderr
    assert "o.jsonl: nothing is open that can be shown" in done.stderr
    done = pages("review", "o.jsonl", "--map", "email=mail")
    assert done.returncode == 0, done.stderr
    assert "1 record left out; --map email=mail:" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_page_that_ends_without_an_answer_names_no_next_command(pages: Pages) -> None:
    pages.write("mails.jsonl", [MAIL])
    (pages.folder / "j.yaml").write_text('{"replies": [{"text": "What?"}]}')
    pages("validate", "mails.jsonl", *ASK, "-m", "scripted:j.yaml", "-o", "o.jsonl")
    before = (pages.folder / "o.jsonl").read_bytes()
    for command, out in (
        (("review", "o.jsonl"), "o.jsonl"),
        (("label", "o.jsonl", *ASK), "l.jsonl"),
    ):
        words = () if out == "o.jsonl" else ("-o", out)
        process, address = pages.start(*command, *words, "--annotator", "ann")
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        assert b"judge " not in asked(address, "end", b"{}", **own)[2]
        assert process.wait(60) == 0 and process.stderr is not None
        *_, last = process.stderr.read().splitlines()
        assert last == f"judge: no question was answered; {out} has no new answer"
    assert (pages.folder / "o.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_review_asks_about_open_entries_alone(pages: Pages) -> None:
    """After a stop, about those that are left."""
    pages.write("r.jsonl", [{"id": "r", "text": "One.", "values": ["zebra", "quartz", "fjord"]}])
    rubric = "name: says\nfields: [text]\neach: values\nquestion: Does it say {{ value }}?\n"
    (pages.folder / "says.yaml").write_text(rubric)
    chances = {"zebra": 0.9, "quartz": 0.55, "fjord": 0.1}
    replies = [{"when": {"contains": value}, "p_yes": p} for value, p in chances.items()]
    (pages.folder / "j.yaml").write_text(json.dumps({"replies": replies, "method": "logprobs"}))
    run = ("validate", "r.jsonl", "--rubric", "./says.yaml", "--workflow", "record")
    run += ("-m", "scripted:j.yaml", "--abstain-margin", "0.1", "-o", "o.jsonl")
    done = pages(*run)
    assert done.returncode == 0, done.stderr
    _, address = pages.start("label", "o.jsonl", "--rubric", "./says.yaml", "-o", "labels.jsonl")
    own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
    page = asked(address, "answer", b'{"question": 0, "answer": 1, "why": ""}', **own)[2]
    assert page.count(b'<bdi lang="">r: zebra</bdi>') == 2, "the latest answer and difference"
    for left, value in ((2, "quartz"), (1, "fjord")):
        process, address = pages.start("review", "o.jsonl", "--failed", "--annotator", "ann")
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        page = asked(address)[2].decode()
        assert f"0 of {left} answered" in page, "the judge was sure of zebra"
        assert f"Does it say {value}?" in page
        body = json.dumps({"question": 0, "answer": 0, "why": value}).encode()
        asked(address, "answer", body, **own)
        process.terminate()
        assert process.wait(60) == 0
    check = pages.lines("o.jsonl")[0]["judge"]["checks"][-1]
    said = [(a["value"], a["verdict"], a.get("reason")) for a in check["evidence"]]
    assert (check["by"], check["verdict"]) == ("person", "pass")
    assert said[:2] == [("quartz", "pass", "quartz"), ("fjord", "pass", "fjord")]
    assert [part[:2] for part in said[2:]] == [("zebra", "pass")]
    (pages.folder / "o.jsonl.run.json").unlink()
    pages.write("o.jsonl", [{**line, "judge": _open(line)} for line in pages.lines("o.jsonl")])
    done = pages("review", "o.jsonl", "--failed")
    assert done.returncode == 2 and "question 'says' is not known: add --ask" in done.stderr


@pytest.mark.slow
def test_a_review_decides_records_of_one_id_and_goes_on_after_their_texts_changed(
    pages: Pages,
) -> None:
    """A repeated id is no error, in a file for --decisions either; an answer to a question in other
    words is told, also if it leaves nothing open."""
    (pages.folder / "j.yaml").write_text('{"replies": [{"p_yes": 0.5}], "method": "logprobs"}')
    run = ("-m", "scripted:j.yaml", "--abstain-margin", "0.1", "-o", "o.jsonl")

    def answered(*texts: str) -> str:
        pages.write("r.jsonl", [{"id": "m", "email": text} for text in texts])
        pages("validate", "r.jsonl", *ASK, *run, "--overwrite")
        process, address = pages.start("review", "o.jsonl", "--annotator", "ann")
        own = {"Origin": address[: address.index("/", 8)], "Content_Type": "application/json"}
        for number in range(len(texts)):
            body = json.dumps({"question": number, "answer": number % 2, "why": ""}).encode()
            assert asked(address, "answer", body, **own)[0] == 200
        process.terminate()
        assert process.wait(60) == 0 and process.stderr is not None
        return " ".join(line["judge"]["verdict"] for line in pages.lines("o.jsonl"))

    assert answered("One.", "Two.", "Three.") == "pass fail pass"
    assert answered("Other.", "More.") == "pass fail"
    again = ("validate", "r.jsonl", *ASK, *run, "--resume", "--decisions")
    done = pages(*again, "o.jsonl.decisions.jsonl")
    assert done.returncode == 0, done.stderr
    done = pages("validate", "r.jsonl", "--ask", "Is it rude?", *ASK[2:], *run, "--overwrite")
    done = pages("review", "o.jsonl")
    assert "people answered 'Is this e-mail polite?' (2 of 2 answers)" in done.stderr
    assert "o.jsonl: nothing is open" in done.stderr
    assert "records that people have decided: 2" in done.stderr
    twice = [{"id": "m", "email": "More.", "labels": {"question": a}} for a in ("yes", "no")]
    pages.write("two.jsonl", twice)
    done = pages(*again, "two.jsonl")
    told = "question is 'no', and on an earlier line about the same fields 'yes'"
    assert done.returncode == 2 and told in done.stderr


def test_a_review_that_cannot_write_out_says_where_the_answers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judged = {"verdict": "abstain", "workflow": "record", "fingerprint": "f", "checks": [OPEN]}
    Path("o.jsonl").write_text(json.dumps({"id": "a", "text": "One.", "judge": judged}) + "\n")
    settings = resolve({"ask": ("Polite?",), "name": ("polite",)})
    held: list[Sink] = []

    def page(session: Session, *_: object) -> None:
        session.answer(0, 0, "")
        held.extend([Sink(Path("o.jsonl"))] if not held else [])

    def reviewed() -> str:
        monkeypatch.setattr(review, "serve", page)
        review.review(Path("o.jsonl"), settings, annotator="ann", ready=print)
        return str(json.loads(Path("o.jsonl").read_bytes())["judge"]["verdict"])

    with pytest.raises(UsageError, match="the answers are in o"):
        reviewed()
    held[0].close()
    assert reviewed() == "pass"


def test_a_test_that_abstains_leaves_nothing_that_a_page_could_not_show(tmp_path: Path) -> None:
    vote = {"model": "test", "method": "test", "verdict": "abstain"}
    check = {"check": "short", "verdict": "abstain", "votes": [vote]}
    judged = {"verdict": "abstain", "workflow": "record", "fingerprint": "f", "checks": [check]}
    out = tmp_path / "o.jsonl"
    out.write_text(json.dumps({"id": "a", "text": "One.", "judge": judged}))
    outcome = review.review(out, resolve({}), annotator="ann", ready=print)
    assert (outcome.of, outcome.reasons) == (0, [])


def test_what_people_take_back_is_open_again(tmp_path: Path) -> None:
    """Of two people the second disagrees after the first one's answer was written into the line."""
    judged = {"verdict": "abstain", "workflow": "record", "fingerprint": "f", "checks": [OPEN]}
    (tmp_path / "o.jsonl").write_text(json.dumps({"id": "a", "text": "One.", "judge": judged}))
    file, polite = (
        tmp_path / "people.jsonl",
        Rubric.from_dict({"name": "polite", "question": "Is it polite?"}),
    )

    def verdict(annotator: str, answer: str | None) -> tuple[str, int]:
        given = Annotation(annotator, answer) if answer else None
        place = Place(label_key(fields), "polite")
        AnswerFile(file, annotator).put(place, given, fields)
        decide(tmp_path / "o.jsonl", Decisions(file, lambda _: polite), {})
        line = json.loads((tmp_path / "o.jsonl").read_bytes())["judge"]
        return line["verdict"], len(line["checks"])

    fields = {"id": "a", "text": "One."}
    assert verdict("ann", "yes") == ("pass", 2)
    assert verdict("bob", "unsure") == ("abstain", 1), "one of two is not more than half"
    assert verdict("cy", "yes") == ("pass", 2)
    assert verdict("cy", None) == ("abstain", 1)
    assert verdict("bob", "no") == ("abstain", 1)
    assert verdict("ann", None) == ("fail", 2)
    assert verdict("bob", "unsure") == ("abstain", 1)


def _open(line: dict[str, dict[str, list[object]]]) -> dict[str, object]:
    """The judge's part of a line, as it was before a person decided."""
    return {**line["judge"], "checks": line["judge"]["checks"][:-1], "verdict": "fail"}
