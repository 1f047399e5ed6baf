"""Reads the commands of a README, each with the output that it promises."""

import re
from pathlib import Path

import attrs

PROMPT = "$ "
ELISION = "..."


@attrs.frozen
class Command:
    """A line after a prompt, and the lines that follow it; ``...`` stands for any lines."""

    line: str
    promised: tuple[str, ...] = ()

    def is_kept_by(self, printed: str) -> bool:
        """Whether the output is the promised one; without a promise, anything is."""
        lines = (r"(?:.*\n)*?" if line == ELISION else re.escape(line.rstrip()) + r"\n" for line in self.promised)
        actual = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        return not self.promised or re.fullmatch("".join(lines), actual) is not None


def read_commands(readme: Path) -> list[Command]:
    """Return the commands of all ``console`` blocks, in order."""
    commands: list[Command] = []
    for block in read_blocks(readme, "console"):
        for line in block.splitlines():
            if line.startswith(PROMPT):
                commands.append(Command(line.removeprefix(PROMPT)))
            else:
                last = commands[-1]
                commands[-1] = attrs.evolve(last, promised=(*last.promised, line))
    return commands


def read_blocks(readme: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
