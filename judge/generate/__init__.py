"""`judge generate`: a model writes records, which are checked as in validation."""
