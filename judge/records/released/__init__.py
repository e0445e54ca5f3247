"""Labelled data in the forms in which they come, one file a form."""
