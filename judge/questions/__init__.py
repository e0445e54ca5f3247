"""Rubrics: questions, their answers, the replies to them and the evidence in these."""
