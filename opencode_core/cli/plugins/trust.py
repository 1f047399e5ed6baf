"""Shows the code and the settings of a project, asks, and records the answer. What is recorded is what was shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from opencode_core.cli.call import Call, here_too
from opencode_core.cli.failures import FAILED
from opencode_core.cli.text import columns, counted, one_line, shown, size
from opencode_core.errors import TrustError

if TYPE_CHECKING:
    from opencode_core.config import Document
    from opencode_core.plugins.project_code import ProjectCode
    from opencode_core.plugins.trust import Changed, TrustedProject, TrustStore, Verdict

_TOLD_BY_PLUGIN = frozenset({"plugin", "plugins", "plugin_block"})
"""The settings that are shown as what they mean for each plugin."""


@attrs.frozen
class Project:
    """One folder with code or settings, as it was read once: this is shown, and this is recorded."""

    code: ProjectCode
    documents: Sequence[Document]
    verdict: Verdict


@click.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Trust without asking.")
@click.option("--revoke", is_flag=True, help="Forget that the project was trusted.")
@click.option("--list", "as_list", is_flag=True, help="List every project that was trusted.")
@here_too
@click.pass_context
def trust(context: click.Context, directory: Path | None, yes: bool, revoke: bool, as_list: bool) -> None:
    """Show the plugins and settings that a project brings, and let them count.

    Nothing of a project is imported before it was trusted, and nothing of it runs here. A change asks again.
    """
    if yes + revoke + as_list > 1:
        raise click.UsageError("Only one of --yes, --revoke and --list can be given.", context)
    store = _store()
    where = directory or context.ensure_object(Call).directory
    if as_list:
        _echo_all(store.projects())
    elif revoke:
        _revoke(store, where)
    elif not _decide(store, where, yes=yes):
        context.exit(FAILED)


def _store() -> TrustStore:
    from opencode_core.host import data_folder
    from opencode_core.plugins.trust import TrustStore

    return TrustStore(data_folder(os.environ) / "trust.toml")


def _echo_all(projects: Sequence[TrustedProject]) -> None:
    if not projects:
        click.echo("No project was trusted.")
        return
    rows = [(str(each.folder), each.when, counted(len(each.files), "file"), each.digest[:12]) for each in projects]
    click.echo("\n".join(columns(rows)))


def _revoke(store: TrustStore, directory: Path) -> None:
    folders = _folders(directory)
    revoked = [folder for folder in folders if store.revoke(folder)]
    for folder in revoked:
        click.echo(f"Forgotten: the plugins and settings of {one_line(folder)} do not count.")
    if not revoked:
        click.echo(f"Nothing to forget: {one_line(folders[-1])} was not trusted.")


def _folders(directory: Path) -> Sequence[Path]:
    """Returns the folders of a project; of one that is gone, its own name, so that it can still be forgotten."""
    from opencode_core.project import find_location

    return find_location(directory).folders if directory.is_dir() else (directory.absolute(),)


def _decide(store: TrustStore, directory: Path, *, yes: bool) -> bool:
    """Shows and asks folder by folder, and returns whether everything is trusted now."""
    projects = _read(store, directory)
    if not projects:
        where = one_line(directory.absolute())
        click.echo(f"There is nothing to trust in {where}: the project brings neither plugins nor settings.")
    answers = [_settle(store, project, yes=yes) for project in projects]  # a "no" to one is no answer about the next
    return all(answers)


def _read(store: TrustStore, directory: Path) -> list[Project]:
    from opencode_core.config import read_documents
    from opencode_core.host import config_folder
    from opencode_core.plugins.finder import Finder
    from opencode_core.project import find_location

    location = find_location(directory)
    documents = read_documents(location, config_dir=config_folder(os.environ), environ=os.environ)
    projects = []
    for folder in location.folders:
        own = [document for document in documents if document.folder == folder]
        code = Finder.read(folder, root=location.root, documents=own)
        if not code.is_empty or code.refused:
            projects.append(Project(code, own, store.verdict(code)))
    return projects


def _settle(store: TrustStore, project: Project, *, yes: bool) -> bool:
    from opencode_core.plugins.trust import Trusted

    for line in _lines(project):
        click.echo(line)
    if isinstance(project.verdict, Trusted):
        click.echo()
        return True
    if not (yes or _ask()):
        click.echo("Not trusted: its plugins and settings do not count.\n")
        return False
    from opencode_core.clock import SystemClock

    store.trust(project.code, when=SystemClock().now().isoformat(timespec="seconds"))
    click.echo("Trusted: its plugins and settings count.\n")
    return True


def _ask() -> bool:
    if not sys.stdin.isatty():
        raise TrustError(
            "Nobody can be asked whether this code is trusted, because the input is not a terminal.",
            "Run it in a terminal, or add --yes after reading the code.",
        )
    return click.confirm("Let this code run with all your rights?", default=False)


def _lines(project: Project) -> Iterator[str]:
    code = project.code
    yield f"{one_line(code.folder)}: {_state(project)}"
    rows = [(file.relative, size(len(file.content)), file.sha256[:12]) for file in code.files]
    yield from columns(rows, indent="  ")
    yield from (f"  {line}" for line in _declared(project.documents))
    yield from (f"  {line}" for line in _set(project))
    yield from (f"  refused: {one_line(refusal.reason)}" for refusal in code.refused)


def _state(project: Project) -> str:
    from opencode_core.plugins.trust import Changed, Unknown

    if project.code.is_empty:
        return "nothing that could run"
    match project.verdict:
        case Unknown():
            return "not trusted yet"
        case Changed():
            return f"changed since it was trusted ({_changes(project.verdict)})"
        case _:
            return "trusted"


def _changes(changed: Changed) -> str:
    groups = {"added": changed.added, "removed": changed.removed, "modified": changed.modified}
    parts = [f"{word}: {', '.join(map(one_line, names))}" for word, names in groups.items() if names]
    if changed.declarations:
        parts.append("what its configuration says")
    return "; ".join(parts) or "its digest"


def _declared(documents: Sequence[Document]) -> Iterator[str]:
    """Says what the configuration adds; of options only the names, since values may be secrets."""
    from opencode_core.config import plugin_settings

    settings = plugin_settings(documents)
    yield from (f"declares the plugin '{one_line(spec.text)}' in {one_line(spec.origin)}" for spec in settings.load)
    for name, options in sorted(settings.options.items()):
        yield f"sets options of the plugin '{one_line(name)}': {', '.join(map(one_line, sorted(options))) or 'none'}"
    if settings.block:
        yield f"blocks: {', '.join(map(one_line, settings.block))}"


def _set(project: Project) -> Iterator[str]:
    """Says which other settings would count, and whole: what is cut off would be trusted unseen."""
    for name, value in json.loads(project.code.declarations).items():
        number, _, key = name.partition(".")
        if key not in _TOLD_BY_PLUGIN:
            origin = project.documents[int(number)].origin
            yield f"sets '{one_line(key)}' in {one_line(origin)}: {shown(json.dumps(value, ensure_ascii=False))}"
