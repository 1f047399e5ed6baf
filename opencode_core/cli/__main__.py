"""Runs the command line as ``python -m opencode_core.cli``."""

import sys

from opencode_core.cli import main

sys.exit(main())
