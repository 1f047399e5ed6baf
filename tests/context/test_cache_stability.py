"""A session of thirty turns in which everything changes: within an epoch what was sent never does, to the byte.

Each turn has a script: what happens before it, and the sources that the model has to be told of in it. Every change is
told exactly once, behind the input and the settled tools, and a copy of the log leads to the same conversation.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

from opencode_core.context.epoch import Admit, Begin
from opencode_core.model.event.conversation import TurnPrepared
from opencode_core.model.event.session import ContextAdmitted, EpochStarted
from opencode_core.model.session import ModelChoice
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import EventLog
from plugin_sdk import UNAVAILABLE, Agent, ContextSource, PermissionRule, hookimpl
from plugin_sdk.testing import StillClock
from plugins_builtin import date, environment, instructions, references, skills
from plugins_builtin.storage_memory import open_store
from tests.context.making import removable
from tests.context.running import Request, Running, running

RELOADED = """
from plugin_sdk import ContextSource, hookimpl


@hookimpl
def opencode_context_sources():
    async def load():
        return {value!r}

    yield ContextSource(
        key="acme/reloaded", load=load, baseline=lambda now: f"Reloaded says {{now}}.",
        update=lambda before, now: f"Reloaded says {{now}} now.", removed=lambda now: "Reloaded is gone.",
    )
"""
SKILL = "---\nname: release\ndescription: {0}\n---\nTag it.\n"
DENIED = PermissionRule(permission="skill", pattern="*", action="deny")
ALLOWED = PermissionRule(permission="skill", pattern="*", action="allow")


class Agents:
    """Two agents, of which one may use skills."""

    @hookimpl
    def opencode_agents(self) -> list[Agent]:
        return [Agent(name="build", permission=(ALLOWED,)), Agent(name="plan", permission=(DENIED,))]


@attrs.define(eq=False)
class Flaky:
    """A source that is sometimes unavailable, and a plugin that comes and goes."""

    key: str
    value: Any = "one"

    @hookimpl
    def opencode_context_sources(self) -> Iterator[ContextSource[Any]]:
        async def load() -> Any:
            if isinstance(self.value, Exception):
                raise self.value
            return self.value

        yield removable(self.key, load)


@attrs.define(eq=False)
class World:
    """Everything around the session that can change."""

    root: Path
    run: Running
    clock: StillClock
    flaky: Flaky

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    async def reload(self, value: str) -> None:
        self.write("reloaded.py", RELOADED.format(value=value))
        await self.run.host.plugins.reload("reloaded")

    async def add(self, plugin: Flaky) -> None:
        await self.run.host.plugins.add(plugin, name="visitor")


Act = Callable[[World], Awaitable[Any] | Any]
Turn = tuple[Act, set[str]]
DATE, TOLD, SKILLS, RELOAD, FLAKY, VISITOR = (
    "core/date",
    "core/instructions",
    "core/skills",
    "acme/reloaded",
    "flaky/value",
    "visitor/value",
)


def nothing(_world: World) -> None:
    return None


def fails(world: World) -> None:
    world.flaky.value = OSError("disk")


def returns(value: Any) -> Act:
    def act(world: World) -> None:
        world.flaky.value = value

    return act


async def edits_two(world: World) -> None:
    world.clock.move(days=1)
    world.write("AGENTS.md", "Be kind.\n")
    await world.reload("five")


def takes_all_instructions(world: World) -> None:
    world.remove("AGENTS.md")
    world.remove("docs/AGENTS.md")


TURNS: list[Turn] = [
    (nothing, set()),
    (nothing, set()),
    (lambda world: world.clock.move(hours=3), set()),
    (lambda world: world.clock.move(days=1), {DATE}),
    (lambda world: world.write("AGENTS.md", "Be quick.\n"), {TOLD}),
    (nothing, set()),
    (lambda world: world.write("docs/AGENTS.md", "Use short sentences.\n"), set()),  # nobody read there yet
    (lambda world: world.run.turn("read", reads=[world.root / "docs" / "page.md"]), {TOLD}),
    (lambda world: world.write("docs/AGENTS.md", "Use long sentences.\n"), {TOLD}),
    (lambda world: world.reload("two"), {RELOAD}),
    (lambda world: world.reload("two"), set()),
    (lambda world: world.add(Flaky(VISITOR)), {VISITOR}),
    (nothing, set()),
    (lambda world: world.run.host.plugins.remove("visitor"), {VISITOR}),
    (fails, set()),
    (nothing, set()),
    (returns("two"), {FLAKY}),
    (returns(UNAVAILABLE), set()),
    (returns("two"), set()),  # it was away, and nothing changed
    (lambda world: world.run.store.switch_agent(world.run.session, "plan"), {SKILLS}),
    (lambda world: world.run.store.switch_model(world.run.session, ModelChoice(provider="b", model="2")), set()),
    (lambda world: world.run.store.switch_agent(world.run.session, "build"), {SKILLS}),
    (lambda world: world.write(".opencode/skills/release/SKILL.md", SKILL.format("How we release.")), {SKILLS}),
    (edits_two, {DATE, TOLD, RELOAD}),
    (takes_all_instructions, {TOLD}),
    (lambda world: world.write("AGENTS.md", "Be back.\n"), {TOLD}),
    (lambda world: world.run.compact(), set()),  # a fresh baseline tells everything
    (nothing, set()),
    (lambda world: world.run.host.plugins.remove("reloaded"), {RELOAD}),
    (lambda world: world.clock.move(days=1), {DATE}),
]


@pytest.mark.behaviour("BX-04", "BX-06")
async def test_thirty_turns_in_which_everything_changes_keep_their_prefix(tmp_path: Path) -> None:
    assert len(TURNS) == 30
    async with a_world(tmp_path) as world:
        for number, (act, expected) in enumerate(TURNS):
            answer = act(world)
            if answer is not None:
                await answer
            request = await world.run.turn(f"Prompt {number}.")
            told = told_now(world.run)
            assert told == expected, f"in turn {number}"
            assert_order(request, number, bool(expected))
        await assert_prefixes(world.run)
        await assert_told_once(world.run)
        await assert_replayed(world.run)


@asynccontextmanager
async def a_world(tmp_path: Path) -> AsyncIterator[World]:
    root, clock, flaky = tmp_path / "project", StillClock(), Flaky(FLAKY)
    plugins = {
        "agents": Agents(),
        "date": date,
        "environment": environment,
        "flaky": flaky,
        "instructions": instructions,
        "references": references,
        "reloaded": root / "reloaded.py",
        "skills": skills,
    }
    (root / ".git").mkdir(parents=True)
    for name, text in {
        "AGENTS.md": "Be brief.\n",
        "docs/page.md": "A page.\n",
        "reloaded.py": RELOADED.format(value="one"),
        ".opencode/skills/release/SKILL.md": SKILL.format("How to release."),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    folders: dict[str, Any] = {"config_dir": tmp_path / "config", "data_dir": tmp_path / "data"}
    async with running(root, plugins, clock=clock, environ={}, **folders) as run:
        yield World(root.resolve(), run, clock, flaky)


def told_now(run: Running) -> set[str]:
    step = run.crossings[-1].step
    return {key for key, _ in step.updated.parts} if isinstance(step, Admit) else set()


def assert_order(request: Request, number: int, is_told: bool) -> None:
    """What is told comes last, behind the new input, and input behind what was settled."""
    asked = request.said.index(("user", f"Prompt {number}."))
    behind = [role for role, _ in request.said[asked + 1 :]]
    assert behind == (["system"] if is_told else [])
    if asked:
        assert request.roles[asked - 1] in ("assistant", "system", "user")


async def assert_prefixes(run: Running) -> None:
    """Within an epoch every request begins with all of the one before it, and that is what the log says, too."""
    page = await run.store.log.history(run.session, limit=10_000, private=True)
    prepared: list[TurnPrepared] = []
    epochs = 0
    for recorded in page.events:
        if isinstance(recorded.event, EpochStarted):
            epochs += 1
            prepared.clear()
        if isinstance(recorded.event, TurnPrepared):
            if prepared:
                assert recorded.event.prefix == prepared[-1].digest
            prepared.append(recorded.event)
    assert epochs == 2
    begins = [place for place, crossed in enumerate(run.crossings) if isinstance(crossed.step, Begin)]
    for start, end in zip(begins, [*begins[1:], len(run.requests)], strict=True):
        requests = run.requests[start:end]
        assert len({request.system.encode() for request in requests}) == 1
        for before, after in pairwise(requests):
            assert sent(after)[: len(sent(before))] == sent(before)


def sent(request: Request) -> list[str]:
    return [json.dumps(dict(message), sort_keys=True) for message in request.messages]


async def assert_told_once(run: Running) -> None:
    page = await run.store.log.history(run.session, limit=10_000)
    texts = [each.event.text for each in page.events if isinstance(each.event, ContextAdmitted)]
    said = [text for role, text in await run.said() if role == "system"]
    assert said == texts
    assert len(set(texts)) == len(texts)
    assert len(texts) == sum(bool(expected) for _, expected in TURNS)


async def assert_replayed(run: Running) -> None:
    storage = await open_store("memory:")
    store = SessionStore(log=EventLog(storage=storage, ids=run.store.ids), ids=run.store.ids, now=run.store.now)
    await store.import_(await run.store.export(run.session))
    assert await attrs.evolve(run, store=store).said() == await run.said()
    assert await store.context(run.session) == await run.store.context(run.session)
    await storage.aclose()
