"""Models on this machine: llama.cpp, transformers, their weights and adapters."""
