"""Judges held against labels: `calibrate` measures them, fits to them, and makes their profile."""
