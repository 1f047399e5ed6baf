"""Plugins with one context source that is wrong, each in one way that a real one could be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import attrs

from plugin_sdk import ABSENT, UNAVAILABLE, ContextSource, Location, PluginScope, hookimpl

FILE = "branch.txt"


class Right:
    """Tells what a file says; no mutant.

    Attributes:
        caught_by: The test that notices what is wrong.
        law: The law that it says is broken.
        says: More of what it says, where that is the point.
        removable: Whether the suite says so.
    """

    caught_by: ClassVar[str] = ""
    law: ClassVar[str] = ""
    says: ClassVar[str] = ""
    removable: ClassVar[bool] = True

    def __init__(self) -> None:
        self.counter = itertools.count()

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        self.location, self.scope = location, scope
        yield ContextSource(key="test/branch", load=self.load, **self.fields())

    async def load(self) -> Any:
        return self.read(self.location.directory / FILE)

    def read(self, file: Path) -> Any:
        return [file.read_text()] if file.exists() else ABSENT

    def fields(self) -> dict[str, Any]:
        return {
            "baseline": lambda value: f"The branch is {value[0]}.",
            "update": lambda before, value: f"The branch is now {value[0]}; it was {before[0]}.",
            "removed": lambda value: f"There is no branch {value[0]} any more.",
        }


class HasNoRemovedText(Right):
    """Right too, of a source that is told anew when it is gone; no mutant."""

    removable = False

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "removed": None}


class HasAnotherKey(Right):
    caught_by, law = "test_the_source_is_contributed_and_nothing_goes_wrong", "contribution"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        for source in super().opencode_context_sources(location, scope):
            yield attrs.evolve(source, key="test/brunch")


class LeavesTheScopeBadly(Right):
    caught_by, law = "test_the_source_is_contributed_and_nothing_goes_wrong", "contribution"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        scope.on_close(lambda: [][0])
        return super().opencode_context_sources(location, scope)


class HasAnotherSourceThatFails(Right):
    caught_by, law = "test_the_source_is_contributed_and_nothing_goes_wrong", "contribution"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        async def fails() -> str:
            raise OSError("gone")

        yield from super().opencode_context_sources(location, scope)
        yield ContextSource(key="test/other", load=fails, baseline=str, update=lambda _, now: now, required=False)


class IsUnavailableAtFirst(Right):
    caught_by, law = "test_the_first_observation_is_a_value", "observation"

    async def load(self) -> Any:
        return await super().load() if next(self.counter) else UNAVAILABLE


class IsAbsentAtFirst(Right):
    caught_by, law = "test_the_first_observation_is_a_value", "observation"

    async def load(self) -> Any:
        return await super().load() if next(self.counter) else ABSENT


class NeverAnswers(Right):
    caught_by, law = "test_it_loads_within_its_deadline", "the deadline"

    async def load(self) -> Any:
        await anyio.sleep_forever()

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "deadline": 0.01}


class CountsItsLoads(Right):
    caught_by, law = "test_an_unchanged_world_gives_the_same_value_twice", "sameness"

    async def load(self) -> Any:
        return [f"main, seen {next(self.counter)} times"]


class TellsTheTimeOfDay(Right):
    caught_by, law = "test_an_unchanged_world_gives_the_same_value_twice", "sameness"

    async def load(self) -> Any:
        return [self.scope.host.now().strftime("%H:%M")]


class RemembersTheHost(Right):
    caught_by, law = "test_an_unchanged_world_gives_the_same_value_in_another_host", "sameness"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        self.number = next(self.counter)
        return super().opencode_context_sources(location, scope)

    async def load(self) -> Any:
        return [f"main of host {self.number}"]


class KeepsHalfAValueBetweenLoads(Right):
    caught_by, law = "test_an_unchanged_world_gives_the_same_value_to_many_at_once", "sameness"

    async def load(self) -> Any:
        self.words: list[str] = []
        for word in ("feature", "login"):
            await anyio.lowlevel.checkpoint()
            self.words.append(word)
        return ["/".join(self.words)]


class StoresAnObject(Right):
    caught_by, law = "test_what_is_stored_of_a_value_is_json", "the codec"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "encode": set}


class StoresANumberThatJsonDoesNotHave(Right):
    caught_by, law = "test_what_is_stored_of_a_value_is_json", "the codec"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "encode": lambda _value: [math.inf]}


class CannotReadBack(Right):
    caught_by, law = "test_a_stored_value_is_read_back_as_the_same", "the codec"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "decode": lambda stored: stored["branch"]}


class ReadsBackSomethingElse(Right):
    caught_by, law = "test_a_stored_value_is_read_back_as_the_same", "the codec"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "decode": lambda stored: [*stored, "and more"]}


class SaysNothing(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "baseline": lambda _value: "\n"}


class SaysNothingWhenGone(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "removed": lambda _value: ""}


class RendersNoText(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "baseline": lambda value: value[0].encode()}


class NumbersItsRenderings(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"
    says = "something else the second time"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "baseline": lambda value: f"{next(self.counter)}. The branch is {value[0]}."}


class DatesItsRenderings(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "baseline": lambda value: f"{value[0]} since {self.scope.host.now().month}"}


class ChangesWhatItRenders(Right):
    caught_by, law = "test_every_rendering_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "baseline": _emptying}


def _emptying(value: list[str]) -> str:
    if value[0] != "seen":
        value[0] = "seen"
    return "The branch was seen."


class RendersWhatIsNotStored(Right):
    caught_by, law = "test_a_stored_value_is_rendered_as_the_observed_one_was", "rendering"

    def fields(self) -> dict[str, Any]:
        upper = {"encode": lambda value: [value[0].upper()], "decode": lambda stored: stored}
        return {**super().fields(), **upper}


class UpdatesOnlyWhatIsObserved(Right):
    caught_by, law = "test_an_update_is_text_and_always_the_same", "rendering"

    def read(self, file: Path) -> Any:
        value = super().read(file)
        return value if value is ABSENT else tuple(value)

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "update": lambda before, now: f"The branch is now {now[0]}; it was {before}."}


class SaysNothingOfAChange(Right):
    caught_by, law = "test_an_update_is_text_and_always_the_same", "rendering"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "update": lambda _before, _value: ""}


class ComparesAfterARestartOnly(Right):
    caught_by, law = "test_what_was_told_is_not_told_again", "change"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "encode": lambda value: [value[0], next(self.counter)]}


class StoresWhichHostItWas(RemembersTheHost):
    caught_by, law = "test_what_was_told_is_not_told_again_after_a_restart", "change"


class CachesForEver(Right):
    caught_by, law = "test_a_change_is_told_once", "change"

    async def load(self) -> Any:
        if not hasattr(self, "cached"):
            self.cached = await super().load()
        return self.cached


class StartsOverAtEachChange(Right):
    caught_by, law = "test_a_change_is_told_once", "change"

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "decode": self.decode}

    def decode(self, stored: Any) -> Any:
        raise ValueError("another version wrote this")


class NumbersItsChanges(Right):
    caught_by, law = "test_a_change_is_told_once", "change"

    async def load(self) -> Any:
        value = await super().load()
        return value if value == ["main"] else [f"{value[0]} {next(self.counter)}"]


class ChangesAnotherToo(Right):
    caught_by, law = "test_a_change_is_told_once", "change"
    says = "the sources that are told of"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        for source in super().opencode_context_sources(location, scope):
            yield source
            yield attrs.evolve(source, key="test/other")


class SeesAChangeOnlyOnce(Right):
    """Keeps in a host what it saw there first after a change; a new host sees what is there."""

    caught_by, law = "test_a_change_is_the_same_in_another_host", "change"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        self.seen: list[Any] = []
        return super().opencode_context_sources(location, scope)

    async def load(self) -> Any:
        self.seen.append(await super().load())
        return self.seen[0]


class ClaimsToBeRemovable(HasNoRemovedText):
    caught_by, law = "test_the_source_says_what_is_told_when_it_is_gone", "removal"
    removable = True


class ClaimsNotToBeRemovable(Right):
    caught_by, law = "test_the_source_says_what_is_told_when_it_is_gone", "removal"
    removable = False


class LeavesABaselineBehind(ClaimsToBeRemovable):
    caught_by, law = "test_the_model_is_told_when_the_plugin_is_gone", "removal"


class IsUnavailableWhenThereIsNothing(Right):
    caught_by, law = "test_the_model_is_told_once_when_there_is_nothing_to_tell", "removal"
    says = "it is unavailable, so what was told stays"

    async def load(self) -> Any:
        value = await super().load()
        return UNAVAILABLE if value is ABSENT else value


class TellsThatThereIsNothing(Right):
    caught_by, law = "test_the_model_is_told_once_when_there_is_nothing_to_tell", "removal"

    async def load(self) -> Any:
        value = await super().load()
        return ["none"] if value is ABSENT else value


class IsGoneForAMomentOnly(Right):
    caught_by, law = "test_the_model_is_told_once_when_there_is_nothing_to_tell", "change"
    says = "after its removal was told nothing changed, but the model would be told"

    async def load(self) -> Any:
        value = await super().load()
        return ["main"] if value is ABSENT and next(self.counter) > 1 else value


class KeepsItsLockWhenCancelled(Right):
    caught_by, law = "test_a_load_that_is_cancelled_ends_and_the_next_one_works", "cancellation"

    @hookimpl
    def opencode_context_sources(self, location: Location, scope: PluginScope) -> Iterator[ContextSource[Any]]:
        self.free = anyio.Event()
        self.free.set()
        return super().opencode_context_sources(location, scope)

    async def load(self) -> Any:
        await self.free.wait()
        self.free = anyio.Event()
        await anyio.lowlevel.checkpoint()
        self.free.set()
        return await super().load()


class CannotBeCancelled(Right):
    caught_by, law = "test_a_load_that_is_cancelled_ends_and_the_next_one_works", "cancellation"

    async def load(self) -> Any:
        if next(self.counter):
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
        return await super().load()


class IsHalfDoneWhenCancelled(Right):
    caught_by, law = "test_a_load_that_is_cancelled_ends_and_the_next_one_works", "cancellation"

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []

    async def load(self) -> Any:
        self.loads.append("half done")
        await anyio.lowlevel.checkpoint()
        self.loads.pop()
        return [f"main, {len(self.loads)} half done"]
