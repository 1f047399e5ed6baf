"""What a connection is called here. Opens none."""

from __future__ import annotations

from typing import Any, TypeAlias

import psycopg

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = psycopg.Connection[Row]
