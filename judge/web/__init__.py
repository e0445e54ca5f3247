"""Servers: local pages on which people answer the questions of judges, and `judge serve`."""
