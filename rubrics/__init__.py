"""The rubrics that come with `judge`: one YAML file a question (`judge.questions.rubric`)."""
