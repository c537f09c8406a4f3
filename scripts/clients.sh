#!/usr/bin/env bash
# Public packages that know PyTorch, under Flambeau, in a virtual environment of their own without
# PyTorch: build/clients-venv. Arguments go to `python -m tools.clients run`; `--quick` installs the
# few small packages of the quick part alone. `clients.sh extensions [NAMES]` builds packages with C++
# from their sources instead and checks them: python -m tools.clients.extensions.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CLIENTS="$ROOT/build/clients-venv"
LIST="$ROOT/tools/clients/packages.txt"
QUICK="einops rotary-embedding-torch safetensors timm torchdiffeq torchvision x-transformers"

make_clients() {
    [ -x "$CLIENTS/bin/python" ] || "$PY" -m venv "$CLIENTS"
    local site
    site="$("$CLIENTS/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
    [ "$(cat "$site/flambeau-checkout.pth" 2>/dev/null)" = "$ROOT" ] ||
        echo "$ROOT" >"$site/flambeau-checkout.pth"
    "$CLIENTS/bin/python" -c 'import numpy' 2>/dev/null ||
        "$CLIENTS/bin/python" -m pip install -qq --disable-pip-version-check numpy ||
        die "clients: NumPy could not be installed; is the package index reachable?"
    # The record of torch that pip takes for it, so that nothing installs PyTorch.
    "$CLIENTS/bin/python" -m flambeau.as_torch enable
}

# The lines of the list for the packages that are named, or all of them.
wanted() {
    grep -v '^#' "$LIST" | if [ $# -eq 0 ]; then cat; else
        grep -E "^($(echo "$@" | tr ' ' '|'))=="
    fi
}

install_clients() {
    local marker="$CLIENTS/installed.txt" list
    list="$(wanted "$@")"
    [ -z "$(comm -23 <(sort <<<"$list") <(sort "$marker" 2>/dev/null))" ] && return 0
    say "installing clients into ${CLIENTS#"$ROOT"/}"
    # shellcheck disable=SC2086
    "$CLIENTS/bin/python" -m pip install -qq --disable-pip-version-check $list ||
        die "clients: their packages could not be installed; is the package index reachable?"
    sort -u - "$marker" 2>/dev/null <<<"$list" >"$marker.new" || sort -u <<<"$list" >"$marker.new"
    mv "$marker.new" "$marker"
}

make_clients
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
if [ "${1:-}" = extensions ]; then
    shift
    # What their setup.py files and their modules import.
    "$CLIENTS/bin/python" -m pip install -qq --disable-pip-version-check setuptools wheel pybind11 scipy numba ||
        die "clients: their packages could not be installed; is the package index reachable?"
    PATH="$CLIENTS/bin:$PATH"
    exec "$CLIENTS/bin/python" -m flambeau.as_torch -m tools.clients.extensions "$@"
fi
case " $* " in
    *" --quick "*)
        # shellcheck disable=SC2086
        install_clients $QUICK
        ;;
    *) install_clients ;;
esac
"$CLIENTS/bin/python" -m tools.clients run "$@"
