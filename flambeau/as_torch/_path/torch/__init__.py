"""What `import torch` finds where Flambeau answers for it: hands over to the alias.

Lies in a folder of its own on the path of `python -m flambeau.as_torch` and of its children, and
is copied by `python -m flambeau.as_torch enable`. Importing it replaces it in `sys.modules`.
"""

import sys as _sys

from flambeau.as_torch import _install

_install.take_over(_sys.modules[__name__])
