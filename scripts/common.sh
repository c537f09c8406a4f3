# Sourced by the other scripts: where the project and its virtual environment are, and how to speak.
# Works in any directory, and without a network once everything is there.

set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${FLAMBEAU_VENV:-$ROOT/.venv}"
PY="$VENV/bin/python"
JOBS="${JOBS:-$(nproc 2>/dev/null || echo 2)}"
cd "$ROOT"
[ -d "$VENV/bin" ] && PATH="$VENV/bin:$PATH"

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
