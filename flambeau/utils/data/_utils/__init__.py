"""The loader's parts: collate, fetch, worker processes.

Owns constants that these share. Nothing in here knows the DataLoader class.
"""

MP_STATUS_CHECK_INTERVAL = 5.0
"""Seconds a process waits on a queue before it looks whether its peer is still alive."""
