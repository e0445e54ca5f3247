"""Benchmarks, label sets and data sets of five papers, and the suite of hostile text."""
