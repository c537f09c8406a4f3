#!/usr/bin/env bash
# Builds what is handed out, into dist/: wheel.sh [sdist] [wheel] [check]. `sdist` is the source;
# `wheel` is made from it, away from what lies about in a checkout, and carries the libraries that it
# needs; `check` installs the newest of each into an empty environment of its own, runs
# tests/installed*.py there, and holds lists of files to the sources', also of what the oldest build back
# end packs that pyproject.toml admits. Builds are made by pip, in the way of any user's, but for the compiler's
# cache: folders above a source do not enter its keys and build/release is the name everywhere, so that
# what a checkout has compiled is not compiled again.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work="$ROOT/build/package"
mkdir -p "$work" dist

# Runs pip with the compiler's cache; the first argument is the folder below which builds take place. The
# compiler goes by the name that CMake gives it in a build in place, for its name enters the cache's keys.
pip_build() {
    local base="$1"
    shift
    local settings=(-C cmake.args=-GNinja -C "cmake.define.CMAKE_BUILD_TYPE=Release")
    local cached=()
    if have ccache && [ -z "${NO_CCACHE:-}" ]; then
        settings+=(-C "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=$ROOT/scripts/ccache.sh")
        cached=("CXX=${CXX:-c++}" "CCACHE_BASEDIR=$base" CCACHE_NOHASHDIR=1 CCACHE_NAMESPACE=flambeau-2
            CCACHE_SLOPPINESS=pch_defines,time_macros)
    fi
    env "${cached[@]}" CMAKE_BUILD_PARALLEL_LEVEL="$JOBS" "$PY" -m pip "$@" "${settings[@]}"
}

# The system that a wheel runs on: the newest symbol of the C library that anything in it needs.
platform_of() {
    local folder="$1" newest
    newest="$(find "$folder" -name '*.so*' ! -name '*.txt' -exec objdump -T {} + 2>/dev/null |
        grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n | tail -1)"
    newest="${newest#GLIBC_2.}"
    [ -n "$newest" ] || die "no library in the wheel"
    echo "manylinux_2_${newest}_$(uname -m)"
}

make_wheel() {
    say "building the wheel"
    local start=$SECONDS made bundle=ON platform
    have dpkg-query || bundle=OFF # which tells the licences of what is carried
    rm -rf "$work/wheel" "$work/unpacked" "$work/source"
    mkdir -p "$work/source"
    tar -xzf "$(ls -t dist/*.tar.gz | head -1)" -C "$work/source" --strip-components=1
    pip_build "$work/source" wheel -q --no-deps --no-build-isolation -w "$work/wheel" "$work/source" \
        -C build-dir=build/release -C "cmake.define.FLAMBEAU_BUNDLE=$bundle"
    made="$(ls "$work"/wheel/*.whl)"
    "$PY" -m zipfile -e "$made" "$work/unpacked"
    platform="$(platform_of "$work/unpacked")"
    [ $bundle = ON ] || platform="linux_$(uname -m)"
    "$PY" -m wheel tags --remove --platform-tag "$platform" "$made" >/dev/null
    rm -f "dist/$(basename "${made%-*}")"-*.whl
    mv "$work"/wheel/*.whl dist/
    local bytes
    bytes="$(find "$work/unpacked" -type f -printf '%s\n' | awk '{n += $1} END {print n}')"
    say "wheel in $((SECONDS - start)) s: $bytes bytes unpacked"
}

make_sdist() {
    say "building the sdist"
    rm -f dist/*.tar.gz
    "$PY" - <<'PYTHON'
from scikit_build_core.build import build_sdist

build_sdist("dist")
PYTHON
}

# An environment with nothing but pip in it.
empty_environment() {
    rm -rf "$work/$1"
    "$PY" -m venv "$work/$1"
}

# Installs a package and what it requires: from the index, or where that is out of reach, with what the
# project's own environment has.
install_package() {
    local quiet=(install -q --disable-pip-version-check)
    pip_build "$work/tmp" "${quiet[@]}" "$@" && return
    say "once more, without the index"
    "$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' \
        >"$("$PY" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/requirements.pth"
    pip_build "$work/tmp" "${quiet[@]}" --no-deps --no-build-isolation "$@"
}

# Runs the smoke tests of an installed package, away from the checkout.
smoke() {
    local script
    mkdir -p "$work/away"
    for script in package_files installed installed_ways_in; do
        (cd "$work/away" && "$work/$1/bin/python" -P "$ROOT/tests/$script.py")
    done
}

# Packs the source, and Python's part of a wheel, with the oldest back end; the newest, which an install
# of the source takes, has packed the rest. Without the index there is one back end only.
oldest_back_end() {
    local bound python="$work/oldest/bin/python"
    bound="$(sed -n 's/^requires = \["scikit-build-core>=\(.*\)"\]$/\1/p' pyproject.toml)"
    [ -n "$bound" ] || die "pyproject.toml names no oldest scikit-build-core"
    empty_environment oldest
    if ! "$python" -m pip install -q --disable-pip-version-check "scikit-build-core==$bound.0"; then
        say "no scikit-build-core $bound.0 to be had, going on without"
        return
    fi
    say "packing with scikit-build-core $bound.0"
    rm -rf "$work/packed"
    mkdir -p "$work/packed/source"
    "$python" -c "from scikit_build_core.build import build_sdist; build_sdist('$work/packed')"
    tar -xzf "$work"/packed/*.tar.gz -C "$work/packed/source" --strip-components=1
    "$python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
        -C wheel.cmake=false -w "$work/packed" "$work/packed/source"
    "$PY" tests/package_files.py "$work"/packed/*.tar.gz "$work"/packed/*.whl
}

check() {
    local wheel sdist start=$SECONDS
    wheel="$(ls -t dist/*"$("$PY" -c 'import sys; print(sys.implementation.cache_tag.replace("cpython-", "cp"))')"-*.whl | head -1)"
    sdist="$(ls -t dist/*.tar.gz | head -1)"
    "$PY" tests/package_files.py "$wheel" "$sdist"
    oldest_back_end
    empty_environment from-wheel
    say "installing $wheel"
    PY="$work/from-wheel/bin/python" install_package "$wheel"
    smoke from-wheel
    empty_environment from-sdist
    say "installing $sdist"
    mkdir -p "$work/tmp"
    # pip builds below TMPDIR, with nothing but what the source asks for.
    TMPDIR="$work/tmp" PY="$work/from-sdist/bin/python" install_package "$sdist" -C build-dir=build/release
    smoke from-sdist
    say "both packages work: $((SECONDS - start)) s"
}

[ $# -gt 0 ] || set -- sdist wheel
for step in "$@"; do
    case "$step" in
        wheel) make_wheel ;;
        sdist) make_sdist ;;
        check) check ;;
        *) die "unknown step $step" ;;
    esac
done
