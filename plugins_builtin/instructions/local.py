"""Observes the instructions in files: the person's, the project's, those beside what was read, those configured.

Runs in a thread, and in one go. What a person has to mend is left out with a problem to tell, and everything else is
told; what may pass by itself makes the whole unavailable, so that nothing is taken back because it could not be seen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import attrs

from plugin_sdk import Boundary, HostFacts, Location
from plugin_sdk.text import shown
from plugins_builtin.instructions.configured import find_configured
from plugins_builtin.instructions.problems import PassingError, Problem, VanishedError
from plugins_builtin.instructions.reading import Reader, Reading
from plugins_builtin.instructions.scanning import NAMES, Found, first_of, names_below, scan
from plugins_builtin.instructions.telling import Instruction

_YES = ("1", "true", "yes")


@attrs.frozen(kw_only=True)
class Observed:
    """What files say.

    Attributes:
        parts: The instructions in order; None when they cannot be observed now.
        problems: What people should know of.
    """

    parts: tuple[Instruction, ...] | None
    problems: tuple[Problem, ...] = ()


@attrs.define(eq=False, kw_only=True)
class LocalFiles:
    """The instruction files of one Location.

    Attributes:
        entries: The paths and patterns that are configured.
        host: Where the person's files are, and the environment.
        reader: Reads them.
    """

    entries: Sequence[str]
    host: HostFacts
    reader: Reader
    _place: tuple[Location, str, str] | None = attrs.field(init=False, default=None)

    def observe(self, boundary: Boundary) -> Observed:
        """Returns what applies at a boundary, the most general first."""
        root, directory = self._canonical(boundary.location)
        collecting = _Collecting(self.reader.begin())
        try:
            collecting.add_persons(self._persons())
            if not self._is_project_left_out() and names_below(root, directory) is not None:
                scanned = scan(root, directory, map(str, boundary.visited))
                collecting.problems += scanned.problems
                for found in scanned.found:
                    collecting.add(found, inside=root)
            self._add_configured(collecting, root, directory)
        except VanishedError:
            return Observed(parts=None, problems=tuple(collecting.problems))
        except PassingError as error:
            return Observed(parts=None, problems=(*collecting.problems, _not_now(error)))
        collecting.reading.end()
        return Observed(parts=tuple(collecting.parts.values()), problems=tuple(collecting.problems))

    def _canonical(self, location: Location) -> tuple[str, str]:
        """Returns root and directory as they really are; looked up once, because a deep path takes its time."""
        place = self._place
        if place is None or place[0] != location:
            place = (location, os.path.realpath(location.root), os.path.realpath(location.directory))
            self._place = place
        return place[1], place[2]

    def _is_project_left_out(self) -> bool:
        return self.host.environ.get("OPENCODE_DISABLE_PROJECT_CONFIG", "").strip().lower() in _YES

    def _home(self) -> str:
        return str(self.host.home or "")

    def _persons(self) -> Found | Problem | None:
        home = self._home()
        seen = first_of(NAMES[:1], partial(os.path.join, self.host.config_dir))
        return first_of(NAMES[1:], partial(os.path.join, home, ".claude")) if seen is None and home else seen

    def _add_configured(self, collecting: _Collecting, root: str, directory: str) -> None:
        configured = find_configured(self.entries, root=root, directory=directory, home=self._home())
        collecting.problems += configured.problems
        for each in configured.files:
            collecting.add(each.found, inside=each.inside, shows_resolved=True)


@attrs.define(eq=False)
class _Collecting:
    """Reads files in order, each once by what it really is."""

    reading: Reading
    parts: dict[str, Instruction] = attrs.field(factory=dict)
    problems: list[Problem] = attrs.field(factory=list)

    def add_persons(self, seen: Found | Problem | None) -> None:
        if isinstance(seen, Problem):
            self.problems.append(seen)
        elif seen is not None:
            try:
                self.add(seen)
            except VanishedError:  # no project depends on it: then the person has none
                return

    def add(self, found: Found, *, inside: str | None = None, shows_resolved: bool = False) -> None:
        outcome = self.reading.read(found, inside=inside)
        if isinstance(outcome, Problem):
            self.problems.append(outcome)
        elif outcome.resolved not in self.parts:
            origin = shown(outcome.resolved if shows_resolved else found.path)
            self.parts[outcome.resolved] = Instruction(origin=origin, text=outcome.text)


def _not_now(error: PassingError) -> Problem:
    return Problem(
        text=f"The instructions stay as they were, because {error}.", remedy="Look at that path if this goes on."
    )
