"""Statistics by subject; each docstring gives formula, range, undefined cases and source."""
