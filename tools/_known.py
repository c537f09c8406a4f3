"""Failures that are known, from text files: a line each, a regular expression over what is printed
of a program, and the reason behind two spaces and `#`.
"""

from __future__ import annotations

import re
from pathlib import Path


def known(path: Path) -> list[re.Pattern[str]]:
    """What known failures look like in what is printed of a program."""
    lines = [x for x in path.read_text().splitlines() if x and not x.startswith("#")]
    return [re.compile(x.split("  # ")[0], re.S) for x in lines]
