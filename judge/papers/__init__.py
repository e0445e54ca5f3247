"""Five papers' benchmarks, label sets and data sets, and the suite of hostile text."""
