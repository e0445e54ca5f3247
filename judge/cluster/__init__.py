"""A run on the worker pool of a Ray cluster."""
