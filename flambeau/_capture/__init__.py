"""Frame capture: follows a user's Python function over fake tensors and leaves a graph of the
operations it called, guards on everything it read, and code that puts back what it changed.

Loaded only when something is compiled. Right or plain: whatever this package does not
understand ends the captured part there (`Break`) or leaves the whole frame to CPython; it never
guesses.
"""
