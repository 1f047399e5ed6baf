"""A session that is run by hand: admits, crosses boundaries, records what a provider would be sent, and settles.

Stands in for the session runtime: what is sent is made of the baseline and the conversation exactly as they are stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from opencode_core.host import Host
from opencode_core.model.event.conversation import (
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolSucceeded,
    TurnDispatched,
    TurnPrepared,
    TurnSettled,
)
from opencode_core.model.event.session import CompactionEnded, PromptAdmitted
from opencode_core.model.json import JSON
from opencode_core.model.message import (
    AssistantMessage,
    CompactionMessage,
    Entry,
    SyntheticMessage,
    SystemMessage,
    UserMessage,
)
from opencode_core.model.part import CompletedTool, TextPart, ToolPart
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import Delivery, ModelChoice
from opencode_core.session.boundary import Boundaries, Crossed
from opencode_core.session.prefix import Measured, measure
from opencode_core.session.store import SessionStore
from plugins_builtin import storage_memory

__all__ = ["MODEL", "Request", "Running", "lowered", "running"]

MODEL = ModelChoice(provider="test", model="one")


@attrs.frozen
class Request:
    """What a provider would be sent."""

    system: str
    messages: tuple[Mapping[str, JSON], ...]
    agent: str
    model: ModelChoice | None

    @property
    def roles(self) -> list[str]:
        return [str(each["role"]) for each in self.messages]

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(str(each["role"]), str(each["content"])) for each in self.messages]


@attrs.define(eq=False)
class Running:
    """One session in one host."""

    host: Host
    store: SessionStore
    boundaries: Boundaries
    session: str
    requests: list[Request] = attrs.field(factory=list)
    crossings: list[Crossed] = attrs.field(factory=list)
    _measured: Measured | None = None
    _epoch: int = -1

    async def admit(self, text: str, *, delivery: Delivery = "steer", id: str | None = None) -> str:
        """Admit a prompt, and return the id of its message."""
        message = id or self.store.ids.ascending("message")
        part = self.store.ids.ascending("part")
        await self.store.log.append(
            PromptAdmitted(
                session=self.session,
                at=self.store.now(),
                message=message,
                prompt=Prompt(text=text),
                delivery=delivery,
                parts=(part,),
            )
        )
        return message

    async def turn(self, *prompts: str, answer: str = "Done.", reads: Sequence[Path] | None = None) -> Request:
        """Admit prompts, run one Provider Turn, and return what was sent; ``reads`` has the answer call a tool."""
        for prompt in prompts:
            await self.admit(prompt)
        crossed = await self.boundaries.cross(self.session)
        self.crossings.append(crossed)
        entries = await self.store.context(self.session)
        sample = crossed.sample
        request = Request(crossed.baseline, tuple(lowered(entries)), sample.agent, sample.model)
        self.requests.append(request)
        await self._answer(request, crossed, answer, reads)
        return request

    async def compact(self, summary: str = "Summary.") -> None:
        """Complete a compaction."""
        message = self.store.ids.ascending("message")
        await self.store.log.append(
            CompactionEnded(session=self.session, at=self.store.now(), message=message, text=summary)
        )

    async def said(self) -> list[tuple[str, str]]:
        """Return everything that is in the conversation, by role."""
        return [(role(entry), text(entry)) async for entry in self.store.stream(self.session, oldest_first=True)]

    async def _answer(self, request: Request, crossed: Crossed, answer: str, reads: Sequence[Path] | None) -> None:
        who: dict[str, Any] = {"session": self.session, "at": self.store.now()}
        new = self.store.ids.ascending
        turn, message, text_part = new("message"), new("message"), new("part")
        epoch = crossed.standing.epoch
        assert epoch is not None
        before = self._measured if epoch.sequence == self._epoch else None
        measured = measure(request.system, request.messages, before)
        self._measured, self._epoch = measured, epoch.sequence
        tool: list[Any] = []
        if reads is not None:
            called: dict[str, Any] = {**who, "message": message, "part": new("part")}
            tool = [
                ToolCalled(**called, call="call_1", tool="read", input={}),
                ToolSucceeded(**called, output="read", visited=tuple(sorted({str(each.parent) for each in reads}))),
            ]
        await self.store.log.append(
            TurnPrepared(
                **who,
                turn=turn,
                agent=request.agent,
                model=request.model,
                messages=measured.messages,
                digest=measured.digest,
                prefix=measured.prefix,
            ),
            TurnDispatched(**who, turn=turn),
            StepStarted(**who, message=message, part=new("part"), agent=request.agent, model=request.model or MODEL),
            TextStarted(**who, message=message, part=text_part),
            TextEnded(**who, message=message, part=text_part, text=answer),
            *tool,
            StepEnded(**who, message=message, part=new("part"), finish="tool-calls" if tool else "stop"),
            TurnSettled(**who, turn=turn),
        )


@asynccontextmanager
async def running(
    directory: Path,
    plugins: Mapping[str, object] | None = None,
    *,
    storage: str = "memory:",
    session: str | None = None,
    **settings: Any,
) -> AsyncIterator[Running]:
    """Open a host without the machine's own plugins, with a session in it."""
    handed = {"storage_memory": storage_memory, **(plugins or {})}
    opened = {"config": {}, "entry_points": False, "storage": storage, **settings}
    async with Host.open(directory, plugins=handed, **opened) as host:
        store = await host.sessions()
        created = await store.create(
            project="test", directory=str(host.location.location.directory), id=session, model=MODEL
        )
        yield Running(host, store, await host.boundaries(), created.id)


def lowered(entries: Sequence[Entry]) -> list[Mapping[str, JSON]]:
    """Return what a provider would be sent of a conversation; switches are not told."""
    return [
        {"role": role(entry), "content": text(entry), **_calls(entry)}
        for entry in entries
        if role(entry) not in ("agent-switch", "model-switch")
    ]


def role(entry: Entry) -> str:
    names = {
        UserMessage: "user",
        AssistantMessage: "assistant",
        SystemMessage: "system",
        SyntheticMessage: "user",
        CompactionMessage: "user",
    }
    name = type(entry.message).__name__.removesuffix("SwitchMessage").lower()
    return names.get(type(entry.message), f"{name}-switch")


def text(entry: Entry) -> str:
    if isinstance(entry.message, (SystemMessage, SyntheticMessage, CompactionMessage)):
        return entry.message.text
    return "".join(part.text for part in entry.parts if isinstance(part, TextPart))


def _calls(entry: Entry) -> dict[str, JSON]:
    calls = [
        {"call": part.call, "tool": part.tool, "output": part.state.output}
        for part in entry.parts
        if isinstance(part, ToolPart) and isinstance(part.state, CompletedTool)
    ]
    return {"calls": calls} if calls else {}
