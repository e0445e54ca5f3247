"""Make the files of this folder: the tools' own code imports the tasks that judge wrote, and
exports them after three people have answered (test_sheet_forms.py reads the exports).

    judge label ... --sheet label-studio:tasks.json     # the commands of the test
    judge label ... --sheet argilla:sheet
    python make.py label-studio tasks.json              # with label-studio-sdk 2.1.2
    python make.py argilla sheet                        # with argilla 2.8.0, requests
"""

import json
import shutil
import sys
import uuid
from pathlib import Path
from unittest.mock import MagicMock

HERE = Path(__file__).parent
PEOPLE = 3


def answer(text: str, person: int) -> str:
    """The third is careless."""
    right = "no" if "Fool" in text else "yes"
    return {"yes": "no", "no": "yes"}[right] if person == 3 else right


def label_studio(source: Path) -> None:
    from label_studio_sdk.converter import Converter
    from label_studio_sdk.label_interface import LabelInterface

    config = source.with_suffix(".xml").read_text()
    interface = LabelInterface(config)
    interface.validate()
    exported = []
    for number, task in enumerate(json.loads(source.read_text()), 1):
        assert interface.validate_task(task)
        annotations = []
        for person in range(1, PEOPLE + 1):
            named = {"to_name": "question", "origin": "manual", "id": f"r{number}{person}"}
            label = {"choices": [answer(task["data"]["e_mail"], person)]}
            result = [{"from_name": "label", "type": "choices", "value": label, **named}]
            why = {"from_name": "why", "type": "textarea", "value": {"text": ["so"]}, **named}
            annotation = {
                "id": 10 * number + person,
                "completed_by": {"id": 3, "email": "cy@example.org"} if person == 3 else person,
                "result": result + [why] * (person == 1),
                "was_cancelled": (number, person) == (1, 2),
                "ground_truth": False,
                "created_at": "2026-11-01T00:00:00Z",
                "updated_at": "2026-11-01T00:00:00Z",
                "lead_time": 1.5,
            }
            assert interface.validate_annotation(annotation)
            annotations.append(annotation)
        # A database may give the fields back in another order.
        data = dict(sorted(task["data"].items()))
        exported.append({"id": number + 100, "annotations": annotations, "data": data, "meta": {}})
    (HERE / "label-studio.xml").write_text(config)
    full = HERE / "label-studio.json"
    full.write_text(json.dumps(exported, indent=1))
    for form, name in (("JSON_MIN", "result.json"), ("CSV", "result.csv")):
        Converter(config, project_dir=None).convert(str(full), f"/tmp/{form}", form, is_dir=False)
        kind = "min" if form == "JSON_MIN" else "table"
        shutil.move(f"/tmp/{form}/{name}", HERE / f"label-studio-{kind}{Path(name).suffix}")


def argilla(source: Path) -> None:
    import argilla as rg
    from argilla.datasets._io._disk import DiskImportExportMixin
    from argilla.records._io import GenericIO, JsonIO

    rg.Argilla._default_client = MagicMock()
    about, settings, records = DiskImportExportMixin._define_child_paths(source)
    assert DiskImportExportMixin._load_dataset_model(about).distribution.min_submitted == PEOPLE
    rg.Settings.from_json(settings).validate()
    made = JsonIO._records_from_json(records)
    for number, record in enumerate(made, 1):
        for person in range(1, PEOPLE + 1):
            user = uuid.uuid5(uuid.NAMESPACE_DNS, str(person))
            status = "discarded" if (number, person) == (1, 2) else "submitted"
            label = answer(record.fields["e_mail"], person)
            record.responses.add(rg.Response("label", label, user_id=user, status=status))
            if person == 1:
                record.responses.add(rg.Response("why", "so", user_id=user, status=status))
    shutil.copy(settings, HERE / "argilla-settings.json")
    for name, flatten in (("argilla", True), ("argilla-nested", False)):
        exported = GenericIO.to_list(made, flatten=flatten)
        (HERE / f"{name}.json").write_text(json.dumps(exported, indent=1))


if __name__ == "__main__":
    {"label-studio": label_studio, "argilla": argilla}[sys.argv[1]](Path(sys.argv[2]))
