"""Parametric function families: functions and curves with constants inside, and usual laws of one input."""
