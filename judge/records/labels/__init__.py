"""Labelled records: a project's own form, tables, and public sets as they were released."""

from judge.records.labels.items import Annotation, LabelledItem
from judge.records.labels.read import SETS, read_labels

__all__ = ["SETS", "Annotation", "LabelledItem", "read_labels"]
