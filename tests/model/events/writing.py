"""Writes the stored form of every event that has none yet: ``python -m tests.model.events.writing --new``.

What is there is never written again, because stores that hold it exist.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from opencode_core.model.codec import EVENTS
from opencode_core.model.event.base import EventLocation, Recorded, SessionEvent
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.storage.envelope import row_of
from tests.model.events.samples import all_of

VERSIONS = Path(__file__).parent / "versions"


def path_of(type: str, version: int) -> Path:
    """Returns where the rows of a version are."""
    return VERSIONS / type / f"{version}.json"


def rows_of(cls: type[SessionEvent]) -> list[dict[str, Any]]:
    """Returns rows as the current code writes them, each with what it says today."""
    rows = []
    for number, event in enumerate(all_of(cls)):
        location = EventLocation(directory="/projects/ü", workspace="w") if number else None
        recorded = Recorded(
            aggregate=event.session, sequence=number, id=f"evt_{number:026}", event=event, location=location
        )
        row = row_of(recorded, EVENTS)
        rows.append({"aggregate": event.session, "row": row, "today": row["data"], "says": repr(event)})
    return rows


def main() -> None:
    """Writes the files that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--new", action="store_true", required=True, help="write the versions that have no file yet")
    parser.parse_args()
    for cls in SESSION_EVENTS:
        path = path_of(cls.kind.type, cls.kind.version)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in rows_of(cls))
            path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
            print(f"wrote {path.relative_to(VERSIONS)}")


if __name__ == "__main__":
    main()
