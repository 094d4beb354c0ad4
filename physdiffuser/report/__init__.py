"""What a run leaves behind: terminal report, JSON document, plots, exports, the run folder."""
