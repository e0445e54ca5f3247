"""Calibration of judges with labels: `calibrate` measures, fits and makes a profile."""
