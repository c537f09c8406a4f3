"""`python -m flambeau.as_torch`: hands over to `_command`, which may then give the namespace of
this file, `__main__`, to the program that it runs. Must hold nothing of its own.
"""

import sys

from flambeau.as_torch._command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
