"""The rubrics that come with `judge`: one YAML file a question, read by `judge.rubric`."""
