"""Checks culturally grounded text written by language models, with judges that can be trusted."""

__version__ = "0.1.0"
