"""Judges under attack: hostile text put into clean records, and how often a verdict turns."""
