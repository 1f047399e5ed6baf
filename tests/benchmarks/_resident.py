"""A process of its own that opens a host with N plugins and prints what the system says it holds, in bytes.

`python -m tests.benchmarks._resident` is bare Python with anyio; with a number, a host with that many plugins.
"""

import os
import sys
from pathlib import Path


def resident() -> int:
    """Returns the resident memory of this process; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(arguments: list[str]) -> None:
    """Prints the resident memory, with a host open when a number of plugins is given."""
    if not arguments:
        print(resident())
        return
    import anyio

    anyio.run(_with_host, int(arguments[0]), arguments[1])


async def _with_host(count: int, folder: str) -> None:
    from opencode_core.host import Host
    from tests.benchmarks._plugins import objects

    async with Host.open(folder, plugins=objects(count), config={}, entry_points=False):
        print(resident())


if __name__ == "__main__":
    main(sys.argv[1:])
