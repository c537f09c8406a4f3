#!/usr/bin/env bash
# Prepares a machine: system packages when allowed and missing, then a virtual environment.
# A second run finds everything in place and does nothing. Takes the names of extra groups of
# Python packages as arguments: test, demo, dev.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TEST="pytest pytest-xdist hypothesis scipy pybind11 setuptools"
DEMO="tqdm matplotlib scikit-learn"
DEV="ruff mypy"

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.12 python3.11; do
        if have "$candidate" &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

has_python_headers() {
    "$1" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
        2>/dev/null
}

missing_system_packages() {
    local python
    have g++ || echo g++
    have cmake || echo cmake
    have ninja || echo ninja-build
    have ccache || echo ccache
    [ -e /usr/include/oneapi/dnnl/dnnl.hpp ] || echo libdnnl-dev
    if python="$(find_python)"; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
        has_python_headers "$python" || echo python3-dev
    else
        echo python3 python3-venv python3-dev
    fi
}

install_system_packages() {
    local wanted
    wanted="$(missing_system_packages | tr '\n' ' ')"
    [ -n "${wanted// /}" ] || return 0
    if [ "$(id -u)" != 0 ] || ! have apt-get; then
        say "not installed, going on without: $wanted"
        return 0
    fi
    say "installing system packages: $wanted"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null 2>&1 || true
    local package
    # One at a time: a package that is not to be had must not keep the others away.
    for package in $wanted; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            say "could not install $package, going on without"
    done
}

make_venv() {
    [ -x "$PY" ] && return 0
    local python
    python="$(find_python)" || die "no Python 3.11 or newer found; set PYTHON=..."
    say "creating $VENV with $("$python" --version)"
    "$python" -m venv "$VENV" 2>/dev/null ||
        "$python" -m virtualenv -q "$VENV" 2>/dev/null ||
        die "cannot create a virtual environment: install python3-venv"
}

# True when every package named is installed. Distributions are looked up, nothing is imported.
installed() {
    "$PY" - "$@" <<'PYTHON'
import importlib.metadata as metadata
import sys

for name in sys.argv[1:]:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        sys.exit(1)
PYTHON
}

install_packages() {
    local group="$1"
    shift
    installed "$@" && return 0
    say "installing Python packages ($group): $*"
    if "$PY" -m pip install -qq --disable-pip-version-check "$@"; then
        return 0
    fi
    # No network: packages of the system's Python will do.
    sed -i 's/^include-system-site-packages = .*/include-system-site-packages = true/' \
        "$VENV/pyvenv.cfg"
    installed "$@" && return 0
    [ "$group" = optional ] && return 0
    die "the packages $* are needed for '$group' and could not be installed"
}

# Puts the checkout on the path of the virtual environment: an editable installation.
link_checkout() {
    local site
    site="$("$PY" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
    [ "$(cat "$site/flambeau-checkout.pth" 2>/dev/null)" = "$ROOT" ] ||
        echo "$ROOT" >"$site/flambeau-checkout.pth"
}

install_system_packages
make_venv
PATH="$VENV/bin:$PATH"
# OpenBLAS only makes things faster, and CMake and Ninja may come from the system.
needed=(numpy scikit-build-core wheel)
for tool in cmake ninja; do have "$tool" || needed+=("$tool"); done
install_packages build "${needed[@]}"
install_packages optional scipy-openblas32
for group in "$@"; do
    case "$group" in
        test) install_packages test $TEST ;;
        demo) install_packages demo $DEMO ;;
        dev) install_packages dev $DEV ;;
        *) die "unknown group $group" ;;
    esac
done
link_checkout
