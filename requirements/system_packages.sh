#!/usr/bin/env bash
# Bring what the tests need besides Python's packages: a library that MuJoCo draws with, and a browser.
#
#     system_packages.sh PYTHON
#
# PYTHON is that of the virtual environment. What is there and works is used. Where something is
# missing, root gets the packages of Debian or Ubuntu, and everybody else playwright's own browser.
# What cannot be had is named, and the tests skip what needs it; this script does not fail for it.
set -uo pipefail

python=$1
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/../test/shared/browsers" && pwd)

can() {
    said=$("$python" "$tests/$1.py" 2>/dev/null)
}

apt_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    echo "Installing $*"
    apt-get update -qq || echo 'apt-get update failed; trying with the lists there are'
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

bring_browser() {
    local packages=(libatomic1) # for playwright itself
    # Ubuntu's chromium is a snap, which does not start in a container.
    ! grep -qx 'ID=debian' /etc/os-release 2>/dev/null || packages+=(chromium fonts-dejavu-core)
    apt_install "${packages[@]}" && can browser && return
    echo "Downloading playwright's chromium (once)"
    local libraries=()
    [ "$(id -u)" -ne 0 ] || libraries=(--with-deps)
    timeout 900 "$python" -m playwright install --no-shell "${libraries[@]}" chromium >/dev/null 2>&1
}

if ! can drawing; then
    apt_install libegl1 libgl1
    can drawing || printf 'Tests that draw with MuJoCo are skipped: %s\n' "$said"
fi
if ! can browser; then
    bring_browser
    can browser || printf 'Tests in a browser are skipped: %s\n' "$said"
fi
