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

# A second package for a second build: build/NAME/package, all links into the checkout but for the
# libraries. Prints the folder, which is where to run from.
package() {
    local folder="$ROOT/build/$1/package" item
    mkdir -p "$folder/flambeau"
    for item in csrc tests tools docs examples pyproject.toml README.md CONTRIBUTING.md; do
        ln -sfn "$ROOT/$item" "$folder/$item"
    done
    for item in "$ROOT"/flambeau/*; do
        case "$item" in *.so | */lib | */__pycache__) continue ;; esac
        ln -sfn "$item" "$folder/flambeau/${item##*/}"
    done
    echo "$folder"
}
