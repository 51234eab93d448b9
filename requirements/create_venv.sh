#!/usr/bin/env bash
# Create a virtual environment from the pinned requirements.
#
#     create_venv.sh FOLDER ROS
#
# ROS is "wheels" (ROS 2 comes from requirements/ros.txt) or the name of a sourced distribution,
# whose packages the environment then sees. FOLDER is replaced. PYTHON names the interpreter.
set -euo pipefail

folder=$1
ros=$2
python=${PYTHON:-python3}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
    printf 'mher_ros: %s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null || fail \
    "no '$python' found. Install Python 3.10 to 3.13, or name one: make venv PYTHON=python3.12"

# sys._base_executable: from inside the environment that is about to be replaced, the Python below it.
found=$("$python" -c '
import sys
print("%d.%d" % sys.version_info[:2], getattr(sys, "_base_executable", None) or sys.executable)')
read -r version python <<<"$found"
case $version in
    3.10 | 3.11 | 3.12 | 3.13) ;;
    *) fail "needs Python 3.10 to 3.13, but '${PYTHON:-python3}' is $version." \
        'Name another one: make venv PYTHON=python3.12' ;;
esac

"$python" -c 'import venv, ensurepip' 2>/dev/null || fail \
    "Python $version cannot create virtual environments (no venv or ensurepip module)." \
    'On Debian and Ubuntu: sudo apt install python3-venv'

install() {
    "$folder/bin/python" -m pip install -qq --disable-pip-version-check --no-compile "$@"
}

install_pinned() {
    # The files name every dependency. pip's own search for them takes no notice of a pin where a
    # package is asked for with an extra, and then fails for the want of a hash.
    install --no-deps --require-hashes -r "$1"
}

rm -rf "$folder"
if [ "$ros" = wheels ]; then
    echo "Creating $folder with Python $version (about 3 minutes, 2 GB; once)"
    "$python" -m venv "$folder"
    echo '  [1/2] ROS 2 Jazzy, as wheels'
    install_pinned "$here/ros.txt"
    echo '  [2/2] torch, MuJoCo, ONNX, test tools'
    base=$here/base.txt
else
    echo "Creating $folder with Python $version (about 2 minutes, 2 GB; once)"
    echo "  ROS 2 $ros is sourced: using it, skipping requirements/ros.txt"
    "$python" -m venv --system-site-packages "$folder"
    # The message packages of that ROS are compiled against its own numpy, so that one stays.
    numpy=$("$folder/bin/python" -c 'import numpy; print(numpy.__version__)')
    echo "  [1/1] torch, MuJoCo, ONNX, test tools, with numpy $numpy of the system"
    base=$folder/requirements.txt
    awk '/^[^ #]/ { skip = /^numpy==/ } !skip' "$here/base.txt" >"$base"
fi
install_pinned "$base"
install_pinned "$here/dev.txt"
install -r "$here/torch.txt"
