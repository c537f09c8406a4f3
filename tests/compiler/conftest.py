"""Puts this folder on the path, for programs; has every stage of compilation verified."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

os.environ["FLAMBEAU_VERIFY"] = "1"
