"""Model files: which ones there are, where they lie, and how they are fetched and proved right."""
