"""Statistics by subject. Each docstring gives the formula, range, undefined cases and source."""
