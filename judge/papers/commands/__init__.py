"""The commands of the papers: one module each, with a `command`."""
