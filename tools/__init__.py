"""Programs for people who work on the project; nothing of it is installed."""
