"""Reports of result files: Markdown and one self-contained HTML page, from the same sections."""
