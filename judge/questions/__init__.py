"""Rubrics: questions, their answers, and the replies and evidence that they take."""
