"""Files that are written completely or not at all, locks, and text that is safe to show."""
