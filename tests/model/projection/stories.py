"""Makes up what may happen in a session, as long as anybody chooses; what does not fit is not part of the story."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from opencode_core.errors import SessionError
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.fault import ApiFault, OutputLengthFault
from opencode_core.model.part import CacheTokens, Tokens
from opencode_core.model.permission import PermissionRule
from opencode_core.model.prompt import Prompt, PromptAgent, PromptFile
from opencode_core.model.rows import FRAGMENTS, INBOX, PENDING
from opencode_core.model.session import FileDiff, Revert
from tests.model.projection.making import ASSISTANT, MODEL, Conversation, conversation, imported

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
"""Picks one of some things."""

IDS = [f"msg_{number}" for number in range(8)]
PARTS = [f"prt_{number}" for number in range(6)]
TEXTS = ["", "a", "é🙂", "two\nlines", "x" * 40]
TIMES = [3, 1_000, 20, 500]
SOURCES = ["core/date", "core/env", "mine/one"]


def story(choose: Choose, length: int) -> Conversation:
    """Returns a session to which at most so many things happened."""
    told = conversation(parent=choose([None, "ses_0"]))
    for _ in range(length):
        event = choose(_KINDS)(choose, told)
        try:
            told.tell(event)
        except SessionError:
            continue
    return told


def _who(choose: Choose) -> dict[str, Any]:
    return {"session": "ses_1", "at": choose(TIMES)}


def _there(choose: Choose, told: Conversation) -> str:
    return str(choose(told.order or IDS))


def _part(choose: Choose, told: Conversation) -> dict[str, Any]:
    message = _there(choose, told)
    return {**_who(choose), "message": message, "part": choose([*told.part_order(message), *PARTS])}


def _open(kind: str) -> Callable[[Choose, Conversation], dict[str, Any]]:
    """Returns what picks a part of a kind, in whatever message; any part when there is none."""

    def pick(choose: Choose, told: Conversation) -> dict[str, Any]:
        rows = [row for row in told.below("part") if row["type"] == kind]
        if not rows:
            return _part(choose, told)
        row = choose(rows)
        return {**_who(choose), "message": row["messageID"], "part": row["id"]}

    return pick


def _admit(choose: Choose, _: Conversation) -> Any:
    files = choose([(), (PromptFile(mime="text/plain", url="file:///a"),)])
    prompt = Prompt(text=choose(TEXTS), files=files, agents=choose([(), (PromptAgent(name="plan"),)]), model=MODEL)
    parts = tuple(PARTS[: prompt.pieces])
    metadata, delivery = choose([None, {"by": "me"}]), choose(["steer", "queue"])
    return s.PromptAdmitted(
        **_who(choose), message=choose(IDS), prompt=prompt, parts=parts, delivery=delivery, metadata=metadata
    )


def _promote(choose: Choose, told: Conversation) -> Any:
    row = choose(told.below(INBOX, "ses_1", PENDING) or [{"message": "msg_0", "admitted": 0, "at": 0}])
    return s.PromptPromoted(
        **_who(choose),
        message=row["message"],
        admitted=row["admitted"],
        admitted_at=row["at"],
        delivery=row.get("delivery", "steer"),
    )


def _step(choose: Choose, _: Conversation) -> Any:
    return c.StepStarted(**_who(choose), message=choose(IDS), part=choose(PARTS), model=MODEL, agent="build")


def _end(choose: Choose, told: Conversation) -> Any:
    tokens = Tokens(input=choose([1, 2]), cache=CacheTokens(read=3))
    cost = choose([Decimal("0.1"), Decimal(0)])
    return c.StepEnded(**_part(choose, told), finish="stop", cost=cost, tokens=tokens, structured=choose([None, [1]]))


def _fail(choose: Choose, told: Conversation) -> Any:
    error = choose([ApiFault(message="busy", status=529), OutputLengthFault()])
    return c.StepFailed(**_who(choose), message=_there(choose, told), error=error, cost=Decimal("0.2"))


def _grow(cls: type, kind: str) -> Callable[[Choose, Conversation], Any]:
    def make(choose: Choose, told: Conversation) -> Any:
        part = _open(kind)(choose, told)
        rows = list(told.rows.scan(FRAGMENTS, (part["message"], part["part"])))
        offset = int(rows[-1][0][2]) + len(str(rows[-1][1])) if rows else 0
        return cls(**part, offset=offset, text=choose(TEXTS))

    return make


def _of_part(cls: type, kind: str = "", **fields: Sequence[Any]) -> Callable[[Choose, Conversation], Any]:
    pick = _open(kind) if kind else _part
    return lambda choose, told: cls(**pick(choose, told), **{name: choose(some) for name, some in fields.items()})


def _new(cls: type, **fields: Sequence[Any]) -> Callable[[Choose, Conversation], Any]:
    return lambda choose, told: cls(
        **_who(choose), message=choose(IDS), **{name: choose(some) for name, some in fields.items()}
    )


def _of_message(cls: type, **fields: Sequence[Any]) -> Callable[[Choose, Conversation], Any]:
    return lambda choose, told: cls(
        **_who(choose), message=_there(choose, told), **{name: choose(some) for name, some in fields.items()}
    )


def _of_session(cls: type, **fields: Sequence[Any]) -> Callable[[Choose, Conversation], Any]:
    return lambda choose, told: cls(**_who(choose), **{name: choose(some) for name, some in fields.items()})


def _stage(choose: Choose, told: Conversation) -> Any:
    return s.RevertStaged(**_who(choose), revert=Revert(message=_there(choose, told), snapshot="s"))


def _commit(choose: Choose, told: Conversation) -> Any:
    message = _there(choose, told)
    return s.RevertCommitted(**_who(choose), message=message, part=choose([None, *told.part_order(message)]))


def _import(choose: Choose, _: Conversation) -> Any:
    message = choose(IDS)
    part = {
        "sessionID": "ses_1",
        "messageID": message,
        "type": "text",
        "text": "old",
        "future": [1],
        "time": {"start": 1},
    }
    parts = tuple({"id": id, **part} for id in choose([(), ("prt_5", "prt_1")]))
    if choose([True, False]):
        return imported(message, "user", parts, future={"a": 1})
    return imported(message, "assistant", parts, **ASSISTANT, future=2)


def _context(choose: Choose, _: Conversation) -> Any:
    changed = {choose(SOURCES): SnapshotEntry(value=choose(TEXTS), removed=choose([None, "gone"]))}
    return s.ContextAdmitted(
        **_who(choose), message=choose(IDS), text="now", changed=changed, removed=(choose(SOURCES),)
    )


def _epoch(choose: Choose, told: Conversation) -> Any:
    snapshot = {source: SnapshotEntry(value=choose(TEXTS)) for source in SOURCES[: choose([1, 3])]}
    return s.EpochStarted(**_who(choose), baseline="base", snapshot=snapshot, since=len(told.events))


_KINDS: list[Callable[[Choose, Conversation], Any]] = [
    _admit,
    _admit,
    _promote,
    _promote,
    _step,
    _step,
    _end,
    _fail,
    _of_part(c.TextStarted),
    _grow(c.TextGrew, "text"),
    _of_part(c.TextEnded, "text", text=TEXTS),
    _of_part(c.ReasoningStarted, provider_metadata=[None, {"a": 1}]),
    _grow(c.ReasoningGrew, "reasoning"),
    _of_part(c.ReasoningEnded, "reasoning", text=TEXTS),
    _of_part(c.ToolInputStarted, call=["call"], tool=["bash"]),
    _grow(c.ToolInputGrew, "tool"),
    _of_part(c.ToolInputEnded, "tool", raw=["{}"]),
    _of_part(c.ToolCalled, call=["call"], tool=["bash"], input=[{}, {"a": [1]}], executed=[None, True]),
    _of_part(c.ToolProgressed, "tool", title=[None, "t"], shown=[None, {"n": 1}]),
    _of_part(c.ToolSucceeded, "tool", output=TEXTS, structured=[None, {"a": 1}], provider_metadata=[None, {"b": 1}]),
    _of_part(c.ToolFailed, "tool", error=["no"], interrupted=[None, True]),
    _of_part(c.ToolOutputCleared, "tool"),
    _of_part(c.SnapshotRecorded, snapshot=["s"]),
    _of_part(c.PatchRecorded, hash=["h"], files=[(), ("a", "b")]),
    _of_part(c.RetryRecorded, attempt=[1], error=[ApiFault(message="busy")]),
    _of_part(c.PartRemoved),
    _of_message(c.MessageRemoved),
    _of_message(c.MessageSummarized, title=[None, "t"], diffs=[(), (FileDiff(file="a"),)]),
    _new(c.SyntheticAdded, text=TEXTS),
    _new(c.ShellStarted, call=["call"], command=["ls"]),
    _of_message(c.ShellEnded, output=TEXTS),
    _new(s.AgentSwitched, agent=["plan", "build"]),
    _new(s.ModelSwitched, model=[MODEL]),
    _new(s.CompactionStarted),
    _new(s.CompactionEnded, text=TEXTS, tail_start=[None, "msg_0"]),
    _new(s.CompactionFailed),
    _stage,
    _of_session(s.RevertCleared),
    _commit,
    _import,
    _context,
    _epoch,
    _of_session(s.SessionTitled, title=TEXTS),
    _of_session(s.SessionTouched),
    _of_session(s.SessionArchived),
    _of_session(s.SessionUnarchived),
    _of_session(s.SessionShared, url=["u"]),
    _of_session(s.SessionUnshared),
    _of_session(s.SessionDiffed, diffs=[(), (FileDiff(file="a", additions=1),)]),
    _of_session(s.SessionPermitted, rules=[(), (PermissionRule(permission="bash", pattern="*", action="ask"),)]),
    _of_session(s.SessionMoved, directory=["/v", "/w"], project=["prj", "other"]),
    _of_session(c.TurnPrepared, turn=["t1", "t2"], attempt=[1, 2]),
    _of_session(c.TurnDispatched, turn=["t1", "t2"]),
    _of_session(c.TurnSettled, turn=["t1", "t2"], outcome=["completed", "failed"]),
]
