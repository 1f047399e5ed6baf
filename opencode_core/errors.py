"""Every error raised on purpose, each saying what happened, whose fault it is and what to do next. Decides nothing.

OpencodeError
├── ConfigError                 a configuration file or a configured value is wrong
├── InvalidKeyError             a key or a name does not follow its grammar
├── DuplicateKeyError           two contributions claim one key
├── ScopeClosedError            something was registered in a scope that has ended
├── ContextError
│   ├── InitializationBlockedError   a first baseline cannot be complete yet
│   ├── SourceFaultError        a context source cannot be rendered or encoded
│   │   └── EmptyRenderingError a context source rendered nothing
│   └── SnapshotDecodeError     what a session's model was told last cannot be read
├── SubscriberOverflowError     a live subscriber read too slowly
├── PermissionBlockedError      a rule or a person does not permit something
├── ControlError                a running host could not be reached or did not answer
├── TrustError                  the record of trusted projects cannot be read or written
├── StorageError                a store failed
│   ├── StorageUrlError         a storage URL is wrong, or no plugin offers its scheme
│   ├── StorageMissingError     there is no store, and none should be made
│   ├── StorageForeignError     something else is where the store should be
│   ├── StorageVersionError     the store is of a newer layout, or of an older one that was not to be migrated
│   ├── StorageDamagedError     the store is broken
│   ├── StorageReadOnlyError    the store may be read but not written
│   ├── StorageFullError        there is no space left
│   ├── StorageBusyError        somebody else held the store for too long
│   ├── StorageConflictError    a transaction kept colliding with others
│   ├── StorageUnavailableError the store cannot be reached
│   ├── StorageClosedError      the store was closed
│   ├── TransactionEndedError   a transaction was used after its end
│   └── InvalidDocumentError    a document is not JSON
├── LogError                    an event cannot be recorded or read, and nothing was written
│   ├── UnknownEventError       no event has that type and version
│   ├── InvalidEventError       an event has a field that its type does not allow
│   ├── EventDecodeError        the data of a stored event do not fit its type
│   ├── SequenceGapError        an event would leave a gap
│   ├── DivergenceError         other content is already at that sequence
│   ├── EventReusedError        an event id is already used at another position
│   ├── ForeignAggregateError   an event belongs to another aggregate than it says
│   ├── OwnerConflictError      an aggregate belongs to somebody else
│   ├── LogRemovedError         a log that was followed is gone
│   └── LiveOnlyError           a live-only event was treated as a durable one
├── SessionError                something cannot be done with a session, and nothing was written
│   ├── SessionNotFoundError    no session has that id
│   ├── MessageNotFoundError    no message or part has that id
│   ├── MessageReusedError      a message id is taken
│   ├── MessageDecodeError      a stored session, message or part cannot be read
│   ├── PromptConflictError     a prompt id was used for something else
│   ├── LifecycleConflictError  a promotion does not fit what was admitted
│   ├── SessionElsewhereError   a session runs in another Location now
│   ├── IllegalTransitionError  a part cannot go from its state to that one
│   └── OperationUnavailableError    an operation does not exist yet
└── PluginError                 one plugin is at fault, and is named
    ├── PluginNotFoundError     no plugin has that name, or its code is not there
    ├── PluginImportError       its code could not be imported
    ├── PluginContractError     it does not follow hookspecs.py
    ├── PluginHookError         one of its hooks raised
    ├── PluginOptionsError      its configured options are wrong
    ├── PluginApiError          it was written for another hook API version
    ├── PluginUntrustedError    it is project-local and nobody trusted it yet
    ├── PluginInstallError      its package could not be installed
    └── PluginReloadError       it cannot be reloaded

ToolFailure                     not an error of the framework: what a tool tells the model
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = [
    "ConfigError",
    "ContextError",
    "ControlError",
    "DivergenceError",
    "DuplicateKeyError",
    "EmptyRenderingError",
    "EventDecodeError",
    "EventReusedError",
    "ForeignAggregateError",
    "IllegalTransitionError",
    "InitializationBlockedError",
    "InvalidDocumentError",
    "InvalidEventError",
    "InvalidKeyError",
    "LifecycleConflictError",
    "LiveOnlyError",
    "LogError",
    "LogRemovedError",
    "MessageDecodeError",
    "MessageNotFoundError",
    "MessageReusedError",
    "OpencodeError",
    "OperationUnavailableError",
    "OwnerConflictError",
    "PermissionBlockedError",
    "Place",
    "PluginApiError",
    "PluginContractError",
    "PluginError",
    "PluginHookError",
    "PluginImportError",
    "PluginInstallError",
    "PluginNotFoundError",
    "PluginOptionsError",
    "PluginReloadError",
    "PluginUntrustedError",
    "PromptConflictError",
    "ScopeClosedError",
    "SequenceGapError",
    "SessionElsewhereError",
    "SessionError",
    "SessionNotFoundError",
    "SnapshotDecodeError",
    "SourceFaultError",
    "StorageBusyError",
    "StorageClosedError",
    "StorageConflictError",
    "StorageDamagedError",
    "StorageError",
    "StorageForeignError",
    "StorageFullError",
    "StorageMissingError",
    "StorageReadOnlyError",
    "StorageUnavailableError",
    "StorageUrlError",
    "StorageVersionError",
    "SubscriberOverflowError",
    "ToolFailure",
    "TransactionEndedError",
    "TrustError",
    "UnknownEventError",
]


@attrs.frozen
class Place:
    """Where in a file something is wrong; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class OpencodeError(Exception):
    """The base of every error here.

    Attributes:
        problem: What happened, one sentence, names in quotes.
        remedy: What to do next, one sentence; empty when there is nothing to do.
        place: The file and line at fault, where there is one.
    """

    def __init__(self, problem: str, remedy: str = "", *, place: Place | None = None) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy
        self.place = place

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}".strip()


class ConfigError(OpencodeError):
    """A configuration file or a configured value is wrong."""


class InvalidKeyError(OpencodeError):
    """A key or a name does not follow its grammar."""


class DuplicateKeyError(OpencodeError):
    """Two contributions claim one key.

    Attributes:
        key: The key that both claim.
        owners: Who claims it: the one that was first, then the one that was refused; empty when it is not known.
    """

    def __init__(self, key: str, owners: tuple[str, str], *, what: str = "key") -> None:
        first, second = owners
        if first != second:
            problem = f"The {what} '{key}' is contributed by both '{first}' and '{second}'."
            remedy = "Rename one of them, or block one of the two plugins."
        else:
            problem = f"The {what} '{key}' is contributed twice" + (f" by '{first}'." if first else ".")
            remedy = "Rename one of them."
        super().__init__(problem, remedy)
        self.key = key
        self.owners = owners


class ScopeClosedError(OpencodeError):
    """Something was registered in a scope that has ended."""


class ContextError(OpencodeError):
    """The System Context could not be composed or rendered."""


class InitializationBlockedError(ContextError):
    """A first baseline cannot be complete yet, because sources are unavailable.

    Attributes:
        keys: All required sources that are unavailable, in composition order.
        reasons: Why, by key.
        owners: Who contributes them, by key, as far as it is known.
    """

    def __init__(
        self, keys: tuple[str, ...], reasons: Mapping[str, str] | None = None, owners: Mapping[str, str] | None = None
    ) -> None:
        self.keys = keys
        self.reasons = dict(reasons or {})
        self.owners = dict(owners or {})
        super().__init__(
            f"The first baseline is blocked because these context sources are unavailable:"
            f" {', '.join(self._named(key) for key in keys)}.",
            "Try again when they can be loaded, or block the plugins that contribute them.",
        )

    def _named(self, key: str) -> str:
        owner = f" of the plugin '{self.owners[key]}'" if self.owners.get(key) else ""
        reason = f" ({self.reasons[key]})" if self.reasons.get(key) else ""
        return f"'{key}'{owner}{reason}"


class SourceFaultError(ContextError):
    """A context source cannot be rendered or encoded: a defect of the plugin that contributes it.

    Attributes:
        key: The source.
        stage: What failed: ``baseline``, ``update``, ``removed`` or ``encode``.
    """

    def __init__(self, key: str, stage: str, cause: BaseException | None = None) -> None:
        what = "could not be encoded" if stage == "encode" else f"failed in its '{stage}' rendering"
        why = f": {type(cause).__name__}: {cause}" if cause is not None else ""
        super().__init__(
            f"The context source '{key}' {what}{why}.", f"Fix '{stage}' of the source, or block its plugin."
        )
        self.key = key
        self.stage = stage


class EmptyRenderingError(SourceFaultError):
    """A context source rendered nothing where text is required."""

    def __init__(self, key: str, rendering: str) -> None:
        super().__init__(key, rendering)
        self.problem = f"The {rendering} rendering of the context source '{key}' is empty."
        self.remedy = f"Return text from '{rendering}', or return ABSENT from 'load'."

    @property
    def rendering(self) -> str:
        """Which rendering was empty."""
        return self.stage


class SnapshotDecodeError(ContextError):
    """What a session's model was told last cannot be read.

    Attributes:
        session: The session's id.
        key: The source; empty when it is the epoch itself.
    """

    def __init__(self, session: str, key: str, reason: str) -> None:
        what = f"The snapshot of the context source '{key}'" if key else "The Context Epoch"
        super().__init__(
            f"{what} in session '{session}' cannot be read: {reason}.", "Run 'opencode-core storage check'."
        )
        self.session = session
        self.key = key


class SubscriberOverflowError(OpencodeError):
    """A live subscriber read too slowly and missed events."""


class PermissionBlockedError(OpencodeError):
    """A rule or a person does not permit something; the model is told.

    Attributes:
        action: What was to be done.
        resources: To what.
    """

    def __init__(self, action: str, resources: tuple[str, ...], reason: str) -> None:
        named = ", ".join(f"'{each}'" for each in resources)
        super().__init__(f"'{action}' is not permitted for {named or 'this'}: {reason}.", "Do it another way, or ask.")
        self.action = action
        self.resources = resources


class ControlError(OpencodeError):
    """A running host could not be reached, or did not answer."""


class TrustError(OpencodeError):
    """The record of trusted projects cannot be read or written."""


class StorageError(OpencodeError):
    """A store failed."""


class StorageUrlError(StorageError):
    """A storage URL is wrong, or no plugin offers its scheme."""


class StorageMissingError(StorageError):
    """There is no store, and none should be made."""


class StorageForeignError(StorageError):
    """Something else is where the store should be; it was left as it is."""


class StorageVersionError(StorageError):
    """The store is of a newer layout, or of an older one that was not to be migrated.

    Attributes:
        found: The layout version of the store.
        known: The newest layout version that can be read here.
    """

    def __init__(self, problem: str, remedy: str = "", *, found: int, known: int) -> None:
        super().__init__(problem, remedy)
        self.found = found
        self.known = known


class StorageDamagedError(StorageError):
    """The store is broken; it was left as it is."""


class StorageReadOnlyError(StorageError):
    """The store may be read but not written."""


class StorageFullError(StorageError):
    """There is no space left where the store is; nothing was written."""


class StorageBusyError(StorageError):
    """Somebody else held the store for too long; nothing was written."""


class StorageConflictError(StorageError):
    """A transaction kept colliding with others; nothing was written."""


class StorageUnavailableError(StorageError):
    """The store cannot be reached.

    Attributes:
        outcome_unknown: Whether the connection was lost during a commit, so that it may have been written.
    """

    def __init__(self, problem: str, remedy: str = "", *, outcome_unknown: bool = False) -> None:
        super().__init__(problem, remedy)
        self.outcome_unknown = outcome_unknown


class StorageClosedError(StorageError):
    """The store was closed."""

    def __init__(self, problem: str = "The store was closed.", remedy: str = "Open it again.") -> None:
        super().__init__(problem, remedy)


class TransactionEndedError(StorageError):
    """A transaction was used after its end."""

    def __init__(
        self,
        problem: str = "A transaction was used after its end.",
        remedy: str = "Use it only inside the function it was handed to.",
    ) -> None:
        super().__init__(problem, remedy)


class InvalidDocumentError(StorageError):
    """A document is null, or not JSON."""


class LogError(OpencodeError):
    """An event cannot be recorded or read; nothing was written."""


class UnknownEventError(LogError):
    """No event has that type and version."""


class InvalidEventError(LogError):
    """An event has a field that its type does not allow."""


class EventDecodeError(LogError):
    """The data of a stored event do not fit its type."""


class SequenceGapError(LogError):
    """An event would leave a gap in its log."""


class DivergenceError(LogError):
    """Other content is already at that sequence."""


class EventReusedError(LogError):
    """An event id is already used at another position."""


class ForeignAggregateError(LogError):
    """An event belongs to another aggregate than its envelope says."""


class OwnerConflictError(LogError):
    """An aggregate belongs to somebody else."""


class LogRemovedError(LogError):
    """A log that was followed is gone, and perhaps another one is in its place."""


class LiveOnlyError(LogError):
    """A live-only event was treated as a durable one."""


class SessionError(OpencodeError):
    """Something cannot be done with a session; nothing was written.

    Attributes:
        session: The session's id.
    """

    def __init__(self, problem: str, remedy: str = "", *, session: str) -> None:
        super().__init__(problem, remedy)
        self.session = session


class SessionNotFoundError(SessionError):
    """No session has that id."""

    def __init__(self, session: str) -> None:
        super().__init__(f"There is no session '{session}'.", "Check the id, and which store is open.", session=session)


class MessageNotFoundError(SessionError):
    """No message or part has that id."""


class MessageReusedError(SessionError):
    """A message id is taken."""


class MessageDecodeError(SessionError):
    """A stored session, message or part cannot be read.

    Attributes:
        message: The message's id; empty when it is the session itself.
    """

    def __init__(self, problem: str, remedy: str = "", *, session: str, message: str = "") -> None:
        super().__init__(problem, remedy, session=session)
        self.message = message


class PromptConflictError(SessionError):
    """A prompt id was used for something else."""


class LifecycleConflictError(SessionError):
    """A promotion does not fit what was admitted."""


class SessionElsewhereError(SessionError):
    """A session runs in another Location now; what was pending still is.

    Attributes:
        directory: Where it runs.
    """

    def __init__(self, session: str, directory: str, here: str) -> None:
        super().__init__(
            f"The session '{session}' runs in '{directory}', not in '{here}'.",
            "Open a host there, and resume it.",
            session=session,
        )
        self.directory = directory


class IllegalTransitionError(SessionError):
    """A part cannot go from the state it is in to that one."""


class OperationUnavailableError(SessionError):
    """An operation does not exist yet.

    Attributes:
        operation: Which one.
    """

    def __init__(self, operation: str, *, session: str) -> None:
        super().__init__(f"The operation '{operation}' does not exist yet.", "", session=session)
        self.operation = operation


class PluginError(OpencodeError):
    """One plugin is at fault.

    Attributes:
        plugin: The plugin's name.
        hook: The hook at fault, where there is one.
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        plugin: str,
        hook: str | None = None,
        place: Place | None = None,
    ) -> None:
        super().__init__(problem, remedy, place=place)
        self.plugin = plugin
        self.hook = hook


class PluginNotFoundError(PluginError):
    """No plugin has that name, or its code is not there."""


class PluginImportError(PluginError):
    """A plugin's code could not be imported."""


class PluginContractError(PluginError):
    """A plugin does not follow ``hookspecs.py``."""


class PluginHookError(PluginError):
    """One of a plugin's hooks raised."""


class PluginOptionsError(PluginError):
    """A plugin's configured options are wrong."""


class PluginApiError(PluginError):
    """A plugin was written for another hook API version."""


class PluginUntrustedError(PluginError):
    """A project-local plugin was not trusted yet, or changed since."""


class PluginInstallError(PluginError):
    """A plugin's package could not be installed."""


class PluginReloadError(PluginError):
    """A plugin cannot be reloaded."""


class ToolFailure(Exception):
    """What a tool raises to tell the model that the call did not work; the loop goes on."""
