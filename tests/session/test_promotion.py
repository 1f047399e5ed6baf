"""Promoting: all that steers at once, one queued prompt when the session would be idle, and each only once."""

from pathlib import Path

import pytest

from opencode_core.model.prompt import AdmittedPrompt
from opencode_core.model.session import Delivery
from opencode_core.session.promotion import promotable
from tests.context.running import running


def prompts(*deliveries: Delivery) -> list[AdmittedPrompt]:
    return [
        AdmittedPrompt(message=f"msg_{number}", session="ses_1", delivery=delivery, at=0, admitted=number)
        for number, delivery in enumerate(deliveries)
    ]


@pytest.mark.parametrize(
    ("deliveries", "is_idle", "expected"),
    [
        ((), True, []),
        (("steer", "steer"), False, [0, 1]),
        (("queue", "queue"), True, [0]),
        (("queue", "queue"), False, []),
        (("queue", "steer", "queue", "steer"), True, [1, 3]),
    ],
)
def test_steering_goes_first_and_a_queued_prompt_waits_until_the_session_would_be_idle(
    deliveries: tuple[Delivery, ...], is_idle: bool, expected: list[int]
) -> None:
    assert [each.admitted for each in promotable(prompts(*deliveries), is_idle=is_idle)] == expected


async def test_a_queued_prompt_waits_while_the_session_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.turn("first")
        queued = [await run.admit(text, delivery="queue") for text in ("second", "third")]
        crossed = await run.boundaries.cross(run.session, is_idle=False)
        assert crossed.promoted == ()
        assert (await run.boundaries.cross(run.session)).promoted == (queued[0],)
        assert (await run.boundaries.cross(run.session)).promoted == (queued[1],)


async def test_a_prompt_that_comes_while_sources_are_observed_waits_for_the_next_boundary(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        first = await run.admit("first")
        late: list[str] = []
        observe = run.boundaries.observe

        async def slow(view: object, boundary: object) -> object:
            late.append(await run.admit("late"))
            return await observe(view, boundary)  # type: ignore[arg-type]

        run.boundaries.observe = slow  # type: ignore[assignment]
        assert (await run.boundaries.cross(run.session)).promoted == (first,)
        run.boundaries.observe = observe
        assert (await run.boundaries.cross(run.session)).promoted == tuple(late)


async def test_looking_promotes_and_tells_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.admit("first")
        head = await run.store.log.head(run.session)
        sample, _step = await run.boundaries.look(run.session)
        assert [each.prompt.text for each in sample.prompts if each.prompt] == ["first"]
        assert await run.store.log.head(run.session) == head
