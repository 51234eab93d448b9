"""``python -m mher_ros`` is ``mher``."""

import sys

from mher_ros.cli import main

sys.exit(main())
