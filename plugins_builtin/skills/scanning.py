"""Scans folders for skills, in one go, reading again only the files that changed. Leads out of no project.

A Markdown file at the top of a folder is a skill of its own. A ``SKILL.md``, at any depth, makes the folder that it is
in a skill, with everything in it. What cannot be read is left out, and reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import attrs

from plugin_sdk import Skill
from plugin_sdk.text import shown
from plugins_builtin.skills.descending import holding_configuration
from plugins_builtin.skills.files import (
    ReplacedError,
    Signature,
    Unreadable,
    check_file,
    is_settled,
    lasting,
    read_text,
    signature,
)
from plugins_builtin.skills.markdown import NotASkill, parse_skill
from plugins_builtin.skills.places import Folder
from plugins_builtin.skills.problems import Problem

ENTRY = "SKILL.md"
MOST_SKILLS = 1_000
MOST_NAMES = 20_000
MOST_DEPTH = 8
MOST_PROBLEMS = 20


@attrs.frozen(kw_only=True)
class File:
    """A file that may be a skill.

    Attributes:
        path: Where it was found.
        real: Where it is, every link followed.
        name: What it is called if its head does not say so; empty when the head must.
        is_folder: Whether the other files in its folder belong to it.
    """

    path: str
    real: str
    name: str
    is_folder: bool


@attrs.frozen(kw_only=True)
class Remembered:
    """What a file was found to be, and the signature that it had."""

    signature: Signature
    found: Skill | Problem


Known: TypeAlias = dict[str, Remembered]
"""What files were found to be, by path. A scan adds to it as it goes, so that one nobody waits for was not in vain."""


@attrs.frozen(kw_only=True)
class Scanned:
    """What a scan found: skills, later ones with priority; what was left out; and what is known of the files there."""

    skills: tuple[Skill, ...]
    problems: tuple[Problem, ...]
    known: Known


def scan(folders: Sequence[Folder], known: Known, now: float) -> Scanned:
    """Returns the skills in folders. Blocks: run it in a thread.

    Args:
        folders: Where; one that is not there has none, and one that was seen under another name is not seen again.
        known: What is known of files from earlier scans.
        now: The time in seconds, by which the disk dates files.

    Raises:
        OSError: The system failed in a way that passes; what was found before is still the best answer.
    """
    scan = _Scan(known=known, now=now)
    holders = holding_configuration(dict.fromkeys(each.holder for each in folders if each.holder))
    for folder in folders:
        if not folder.holder or folder.holder in holders:
            scan.visit(folder)
    return scan.result()


def read_files(files: Iterable[File], known: Known, now: float) -> Scanned:
    """Returns the skills that files hold. Blocks: run it in a thread.

    Args:
        files: The files.
        known: What is known of files from earlier scans.
        now: The time in seconds, by which the disk dates files.

    Raises:
        OSError: The system failed in a way that passes; what was found before is still the best answer.
    """
    scan = _Scan(known=known, now=now)
    for file in files:
        scan.take(file)
    return scan.result()


@attrs.define(eq=False, kw_only=True)
class _Scan:
    known: Known
    now: float
    skills: list[Skill] = attrs.field(init=False, factory=list)
    problems: list[Problem] = attrs.field(init=False, factory=list)
    read: Known = attrs.field(init=False, factory=dict)
    _visited: set[str] = attrs.field(init=False, factory=set)
    _seen: set[tuple[int, int]] = attrs.field(init=False, factory=set)
    _names: int = attrs.field(init=False, default=0)

    def visit(self, folder: Folder) -> None:
        real = self._contained(str(folder.path), folder) if os.path.lexists(folder.path) else None
        if real is None or real in self._visited:
            return
        self._visited.add(real)
        self._seen, self._names = set(), 0
        before = len(self.skills)
        for found in self._look(real, folder, 0):
            if len(self.skills) - before == MOST_SKILLS:
                self._leave_rest(folder, f"more than {MOST_SKILLS:,} skills")
                return
            self.take(found)
        if self._names > MOST_NAMES:
            self._leave_rest(folder, f"more than {MOST_NAMES:,} names")

    def take(self, file: File) -> None:
        try:
            remembered = self._remembered(file)
        except FileNotFoundError:
            if os.path.islink(file.path):  # otherwise it was deleted meanwhile, which is nobody's fault
                self.problems.append(_skipped(file.path, "is a link that leads nowhere"))
            return
        except Unreadable as error:
            self.problems.append(_skipped(file.path, str(error)))
            return
        if is_settled(remembered.signature, self.now):
            self.known[file.path] = self.read[file.path] = remembered
        if isinstance(remembered.found, Skill):
            self.skills.append(remembered.found)
        else:
            self.problems.append(remembered.found)

    def result(self) -> Scanned:
        return Scanned(skills=tuple(self.skills), problems=_bounded(self.problems), known=self.read)

    def _leave_rest(self, folder: Folder, what: str) -> None:
        problem = f"The skills folder '{shown(folder.path)}' holds {what}."
        self.problems.append(Problem(problem, "Remove some: the others are left out."))

    def _look(self, directory: str, folder: Folder, depth: int) -> Iterator[File]:
        entries = self._entries(directory)
        is_skill = any(each.name == ENTRY and not _is_directory(each) for each in entries)
        for entry in entries:
            self._names += 1
            if self._names > MOST_NAMES:
                return
            if _is_directory(entry):
                if depth < MOST_DEPTH and not entry.name.startswith(".") and (real := self._real(entry, folder)):
                    yield from self._look(real, folder, depth + 1)
            elif entry.name == ENTRY:
                if real := self._real(entry, folder):
                    yield File(path=entry.path, real=real, name="", is_folder=True)
            elif depth == 0 and not is_skill and entry.name.endswith(".md") and (real := self._real(entry, folder)):
                yield File(path=entry.path, real=real, name=entry.name.removesuffix(".md"), is_folder=False)

    def _entries(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            status = os.stat(directory)
            # A link may lead back to a folder that this one is in.
            if (status.st_dev, status.st_ino) in self._seen:
                return []
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(directory) as entries:
                return sorted(islice(entries, MOST_NAMES + 1), key=lambda each: each.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            problem = f"The skills folder '{shown(directory)}' was left out: it {lasting(error)}."
            self.problems.append(Problem(problem, "Make it readable, or remove it."))
            return []

    def _real(self, entry: os.DirEntry[str], folder: Folder) -> str | None:
        return self._contained(entry.path, folder) if entry.is_symlink() else entry.path

    def _contained(self, path: str, folder: Folder) -> str | None:
        real = os.path.realpath(path)
        if folder.inside is None or Path(real).is_relative_to(folder.inside):
            return real
        problem = f"'{shown(path)}' was left out: it leads out of the project '{shown(folder.inside)}'."
        self.problems.append(Problem(problem, "Copy into the project what it leads to, or remove it."))
        return None

    def _remembered(self, file: File) -> Remembered:
        status = check_file(file.real)
        known = self.known.get(file.path)
        if known is not None and known.signature == signature(status):
            return known
        try:
            return _read(file, status)
        except ReplacedError:
            return _read(file, check_file(file.real))


def _read(file: File, checked: os.stat_result) -> Remembered:
    text, found = read_text(file.real, checked)
    directory = os.path.dirname(file.real)
    try:
        skill = parse_skill(text, name=file.name, directory=directory, is_folder=file.is_folder)
    except NotASkill as error:
        return Remembered(signature=found, found=_skipped(file.path, str(error)))
    return Remembered(signature=found, found=skill)


def _skipped(path: str, reason: str) -> Problem:
    return Problem(f"The skill file '{shown(path)}' was left out: it {reason}.", "Correct it, or remove it.")


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links that lead in a circle
        return False


def _bounded(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    if len(problems) <= MOST_PROBLEMS:
        return tuple(problems)
    rest = Problem("More skill files were left out than can be listed.", "Correct those that are listed first.")
    return (*problems[:MOST_PROBLEMS], rest)
