"""`python -m tailgate` is the same as the command `tailgate`."""

from __future__ import annotations

import sys

from tailgate.cli import main

sys.exit(main())
