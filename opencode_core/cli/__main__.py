"""Runs the command line as ``python -m opencode_core.cli``, without the folder it is started in on Python's path."""

import sys

from opencode_core.cli import main

# Python puts the working directory first, and what is declared there would count as installed, trusted or not.
del sys.path[0]
sys.exit(main())
