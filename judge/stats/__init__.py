"""Statistics, one a file; each docstring gives formula, range, undefined cases and source."""
