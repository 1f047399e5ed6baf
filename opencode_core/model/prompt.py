"""What a person asks, before it becomes a message. Stores nothing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from opencode_core.model.json import JSON
from opencode_core.model.message import OutputFormat
from opencode_core.model.part import Excerpt, Source
from opencode_core.model.session import Delivery, ModelChoice


@attrs.frozen(kw_only=True)
class PromptFile:
    """An attached file."""

    mime: str
    url: str
    filename: str | None = None
    source: Source | None = None


@attrs.frozen(kw_only=True)
class PromptAgent:
    """A mentioned agent."""

    name: str
    source: Excerpt | None = None


@attrs.frozen(kw_only=True)
class PromptSubtask:
    """Work to delegate."""

    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


@attrs.frozen(kw_only=True)
class Prompt:
    """What is asked, with everything that was chosen for the answer. Two prompts are the same if they are equal."""

    text: str = ""
    files: tuple[PromptFile, ...] = ()
    agents: tuple[PromptAgent, ...] = ()
    subtasks: tuple[PromptSubtask, ...] = ()
    agent: str | None = None
    model: ModelChoice | None = None
    system: str | None = None
    tools: Mapping[str, bool] | None = None
    format: OutputFormat | None = None

    @property
    def pieces(self) -> int:
        """How many parts it becomes."""
        return bool(self.text) + len(self.files) + len(self.agents) + len(self.subtasks)


@attrs.frozen(kw_only=True)
class AdmittedPrompt:
    """A prompt that was accepted into the inbox of a session.

    Attributes:
        message: Its id, which the user message will have.
        admitted: The sequence of its admission.
        promoted: The sequence of its promotion; None while it is pending.
        prompt: What was asked; None when it was promoted, for then the message has it.
    """

    message: str
    session: str
    delivery: Delivery
    at: int
    admitted: int
    promoted: int | None = None
    prompt: Prompt | None = None
    parts: tuple[str, ...] = ()
    metadata: Mapping[str, JSON] | None = None
