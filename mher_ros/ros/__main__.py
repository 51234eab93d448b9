"""``python -m mher_ros.ros NODE`` runs a node, as its executable does."""

import sys

from mher_ros.ros.common.process import FOLDERS, run_process

if len(sys.argv) < 2 or sys.argv[1] not in FOLDERS:
    sys.exit(f'python -m mher_ros.ros takes one of {", ".join(FOLDERS)}, got {sys.argv[1:2]}')
sys.exit(run_process(sys.argv[1], sys.argv[1:]))
