"""Calibration: judges held against labels, and what is learnt from it."""
