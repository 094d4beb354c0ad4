"""Conserved quantities of a system: functions of the state that do not change along its flow."""
