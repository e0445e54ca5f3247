"""`--engine batch`: calls to one model collected into the batches of a provider's batch API.

`backend` is the backend that a client is given, `waves` collects calls and hands batches over,
`journal` is what of them lies on disk, `api` is the provider's side in OpenAI's format.
"""
