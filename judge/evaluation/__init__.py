"""Measuring a model: the papers' benchmarks, from items to tables."""
