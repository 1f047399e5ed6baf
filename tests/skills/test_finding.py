"""How the skills of all plugins come together: all sources at once, later plugins over earlier, faults on their own."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from opencode_core.host import Host
from plugin_sdk import Skill, SkillSource, hookimpl
from tests.skills.making import found


@attrs.define(eq=False)
class Offering:
    """Contributes one source, which answers as it is told."""

    answer: Any

    @hookimpl
    def opencode_skills(self) -> Iterator[SkillSource]:
        async def load() -> Iterable[Skill]:
            answer = self.answer
            if isinstance(answer, BaseException):
                raise answer
            return await answer() if callable(answer) else answer

        yield SkillSource(key="only", load=load)


def skill(name: str, body: str = "") -> Skill:
    return Skill(name=name, body=body)


async def test_sources_are_asked_all_at_once(tmp_path: Path) -> None:
    arrived, everybody = [], anyio.Event()

    async def load() -> list[Skill]:
        arrived.append(1)
        if len(arrived) == 3:
            everybody.set()
        await everybody.wait()
        return [skill(f"s{len(arrived)}")]

    plugins = {name: Offering(load) for name in "abc"}
    with anyio.fail_after(10):
        async with Host.open(tmp_path, plugins=plugins, config={}, entry_points=False) as host:
            await found(host)


@pytest.mark.behaviour("SK-02")
async def test_of_two_skills_with_one_name_that_of_the_later_plugin_is_in_effect(tmp_path: Path) -> None:
    plugins = {"b": Offering([skill("x", "b"), skill("y", "b")]), "a": Offering([skill("x", "a"), skill("z", "a")])}
    async with Host.open(tmp_path, plugins=plugins, config={}, entry_points=False) as host:
        skills = await found(host)
    assert {name: each.body for name, each in skills.items()} == {"x": "b", "y": "b", "z": "a"}
    assert list(skills) == ["x", "y", "z"]


@pytest.mark.parametrize("fault", [OSError("disk"), SystemExit(1), ["not a skill"], None])
async def test_a_source_that_fails_keeps_what_it_found_and_is_reported(tmp_path: Path, fault: Any) -> None:
    bad, good = Offering([skill("bad")]), Offering([skill("good")])
    plugins = {"bad": bad, "good": good}
    async with Host.open(tmp_path, plugins=plugins, config={}, entry_points=False) as host:
        await found(host)
        bad.answer = fault
        good.answer = [skill("better")]
        assert list(await found(host)) == ["bad", "better"]
        assert len(host.plugins.get("bad").diagnostics) == 1
        assert host.plugins.get("good").diagnostics == ()
        bad.answer = []
        assert list(await found(host)) == ["better"]
