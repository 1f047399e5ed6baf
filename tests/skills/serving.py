"""A server of skills for one test, and somebody who fetches from it, without waits and with a clock of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from plugin_sdk import HostFacts, Skill
from plugins_builtin.skills.places import Address
from plugins_builtin.skills.remote import RemoteSkills
from tests.support.http_server import Answer, HttpServer


def entry(name: str, *files: str, version: object = None) -> dict[str, object]:
    """Return a line of an index."""
    return {"name": name, "files": list(files or ("SKILL.md",)), **({} if version is None else {"version": version})}


def publish(server: HttpServer, *entries: object) -> None:
    """Have a server list skills, and forget everything else that it published before."""
    server.routes.clear()
    server.routes["/skills/index.json"] = json.dumps({"skills": entries}).encode()


def put(server: HttpServer, files: Mapping[str, Answer]) -> None:
    """Have a server answer paths below its folder of skills."""
    server.routes.update({f"/skills/{path}": answer for path, answer in files.items()})


def asked(server: HttpServer) -> list[str]:
    """Return what was asked of a server since the last time, sorted."""
    paths = sorted(each.path.removeprefix("/skills/") for each in server.requests)
    server.requests.clear()
    return paths


@attrs.define(eq=False)
class Scope:
    """As much of a scope as a remote source needs."""

    data_dir: Path
    at: datetime = datetime(2026, 3, 2, 12, tzinfo=UTC)
    warnings: list[str] = attrs.field(factory=list)

    @property
    def host(self) -> HostFacts:
        return HostFacts(environ={}, config_dir=self.data_dir, data_dir=self.data_dir, now=lambda: self.at)

    def warn(self, problem: str, remedy: str = "") -> None:
        if problem not in self.warnings:
            self.warnings.append(problem)

    def later(self, **span: float) -> None:
        self.at += timedelta(**span)


def written(folder: Path) -> list[Path]:
    """Return every file below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


@attrs.define(eq=False)
class Client:
    """One host's view of a server: its source of skills, its folder, its clock."""

    source: RemoteSkills
    scope: Scope
    pauses: list[float]

    async def skills(self) -> dict[str, Skill]:
        """Ask for the skills, as a boundary does."""
        return {each.name: each for each in await self.source.load()}

    async def bodies(self) -> dict[str, str]:
        """Ask for the skills, and return what they say."""
        return {name: skill.body for name, skill in sorted((await self.skills()).items())}

    async def later(self) -> dict[str, str]:
        """Ask again after an hour and a bit."""
        self.scope.later(hours=2)
        return await self.bodies()

    def files(self) -> dict[str, str]:
        """Return every file on disk that is not the client's own record, with what it holds."""
        return {
            path.relative_to(self.source.root).as_posix(): path.read_text()
            for path in sorted(self.source.root.rglob("*"))
            if path.is_file() and path.name not in (".checked", ".opencode-skill.json")
        }


def client(server: HttpServer | str, data_dir: Path, **changes: Any) -> Client:
    """Return a client of a server, patient, and without waits between attempts."""
    scope, pauses = Scope(data_dir), []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    url = server if isinstance(server, str) else server.url("/skills/")
    fields: dict[str, Any] = {
        "refresh_seconds": 3_600.0,
        "pause": pause,
        "chance": lambda: 0.5,
        "patience": 30.0,
        "first_patience": 30.0,
    }
    source = RemoteSkills(address=Address(url=url), scope=scope, **{**fields, **changes})  # type: ignore[arg-type]
    return Client(source, scope, pauses)
