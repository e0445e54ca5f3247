"""The engine under `transformers:`: batches of prompts through a model in this process."""
