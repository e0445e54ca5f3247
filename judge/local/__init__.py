"""Models on this machine: llama.cpp, transformers, their weights and adapters."""

DEFAULT_NAME = "qwen2.5-coder-1.5b"
"""The weights of the default model."""
