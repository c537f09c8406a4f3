"""Processes that a launcher starts, as seen by the program."""
