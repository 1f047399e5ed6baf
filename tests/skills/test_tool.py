"""The tool hands out a skill to whom may have it, with the files beside it, and tells others nothing."""

import os
from pathlib import Path

import anyio
import pytest

from opencode_core.errors import PermissionBlockedError
from opencode_core.tools.registry import Completed, Refused, materialize
from plugin_sdk import PermissionRequest, Skill, ToolOutput
from tests.skills.making import ALLOWED, CONFIGURING, DENIED, call, opened, rule, skill_text, write


async def loaded(directory: Path, name: str, *skills: Skill) -> ToolOutput:
    async with opened(directory, skills=skills) as host:
        settlement = await call(host, name)
    assert isinstance(settlement, Completed), settlement
    return settlement.output


def files(output: ToolOutput) -> list[str]:
    return [line.removeprefix("- ") for line in output.text.splitlines() if line.startswith("- ")]


@pytest.mark.behaviour("SK-08", "BT-22")
async def test_a_skill_is_handed_out_with_its_folder_and_the_files_in_it(tmp_path: Path) -> None:
    folder = tmp_path / ".opencode/skills/apple"
    write(folder / "SKILL.md", skill_text(name="apple", description="Peel.", body="Use scripts/peel.py."))
    for name in ("scripts/peel.py", "a.txt", "z.txt"):
        write(folder / name)
    output = await loaded(tmp_path, "apple")
    assert output == ToolOutput(
        text=f"# Skill: apple\n\nUse scripts/peel.py.\n\n"
        f"The paths in this skill are relative to its base directory: {folder}\n\n"
        "Some of the files in it:\n- a.txt\n- scripts/peel.py\n- z.txt",
        structured={"name": "apple"},
        title="Loaded the skill apple",
    )


@pytest.mark.behaviour("SK-08", "BT-22")
async def test_permission_is_asked_for_the_name_and_would_be_remembered_for_it(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    async def gate(request: PermissionRequest) -> None:
        asked.append(request)

    async with opened(tmp_path, rules=()) as host:
        settlement = await call(host, CONFIGURING, gate=gate)
    assert isinstance(settlement, Completed)
    assert settlement.permission == "skill"
    assert asked == [
        PermissionRequest(action="skill", resources=(CONFIGURING,), session="ses", agent="build", save=(CONFIGURING,))
    ]


@pytest.mark.behaviour("SK-09", "BT-22")
@pytest.mark.parametrize("rules", [DENIED, (*ALLOWED, rule("apple", "deny")), None], ids=["all", "one", "no agent"])
async def test_a_denied_skill_is_refused_exactly_like_one_that_does_not_exist(tmp_path: Path, rules: object) -> None:
    skill = Skill(name="apple", description="Peel.", body="SECRET", directory="/secret")
    async with opened(tmp_path, skills=(skill,), rules=rules) as host:  # type: ignore[arg-type]
        denied = await call(host, "apple")
    async with opened(tmp_path, rules=rules) as host:  # type: ignore[arg-type]
        unknown = await call(host, "apple")
    assert denied == unknown == Refused(message="The skill 'apple' is not available.", reason="failed")


@pytest.mark.behaviour("SK-09")
async def test_the_refusal_of_an_unknown_name_lists_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path, skills=(Skill(name="apple", body="x"),)) as host:
        refused = await call(host, "aple")
    assert refused == Refused(message="The skill 'aple' is not available.", reason="failed")


async def test_nobody_is_asked_to_permit_a_skill_that_does_not_exist(tmp_path: Path) -> None:
    async def gate(request: PermissionRequest) -> None:
        pytest.fail(f"{request} was asked")

    async with opened(tmp_path) as host:
        assert isinstance(await call(host, "unknown", gate=gate), Refused)


async def test_a_person_who_declines_is_not_quoted(tmp_path: Path) -> None:
    async def gate(request: PermissionRequest) -> None:
        raise PermissionBlockedError(request.action, request.resources, "the person said no")

    async with opened(tmp_path) as host:
        refused = await call(host, CONFIGURING, gate=gate)
    assert refused == Refused(message=f"The skill '{CONFIGURING}' is not available.", reason="failed")


@pytest.mark.parametrize("name", [None, "", 7, ["a"]])
async def test_a_name_that_is_none_is_refused(tmp_path: Path, name: object) -> None:
    async with opened(tmp_path) as host:
        assert isinstance(await call(host, name), Refused)


@pytest.mark.behaviour("SK-10", "BT-22")
async def test_of_a_skill_that_is_a_single_file_no_other_files_are_disclosed(tmp_path: Path) -> None:
    folder = tmp_path / ".opencode/skills"
    write(folder / "apple.md", "Peel.")
    write(folder / "zebra.md", "Paint.")
    output = await loaded(tmp_path, "apple")
    assert "zebra" not in output.text
    assert files(output) == []
    assert f"base directory: {folder}" in output.text


@pytest.mark.behaviour("SK-08", "BT-22")
async def test_at_most_ten_files_are_named_the_first_by_name(tmp_path: Path) -> None:
    folder = tmp_path / ".opencode/skills/apple"
    write(folder / "SKILL.md", skill_text(name="apple"))
    for number in range(30):
        write(folder / f"{number:02}.txt")
    assert files(await loaded(tmp_path, "apple")) == [f"{number:02}.txt" for number in range(10)]


async def test_links_hidden_files_and_the_folders_of_other_skills_are_not_named(tmp_path: Path) -> None:
    folder = tmp_path / ".opencode/skills/apple"
    write(folder / "SKILL.md", skill_text(name="apple"))
    write(folder / "own.txt")
    write(folder / ".env")
    write(folder / ".git/config")
    write(folder / "other/SKILL.md", skill_text(name="other"))
    write(folder / "other/secret.txt")
    write(folder / "odd\nname.txt")
    os.mkfifo(folder / "pipe")
    os.symlink(folder / "own.txt", folder / "link.txt")
    write(tmp_path / "elsewhere/secret.txt")
    os.symlink(tmp_path / "elsewhere", folder / "up")
    assert files(await loaded(tmp_path, "apple")) == ["own.txt"]


async def test_a_skill_whose_folder_is_gone_is_handed_out_without_files(tmp_path: Path) -> None:
    skill = Skill(name="apple", body="Peel.", directory=str(tmp_path / "gone"), is_folder=True)
    assert files(await loaded(tmp_path, "apple", skill)) == []


async def test_a_skill_without_a_folder_names_none(tmp_path: Path) -> None:
    output = await loaded(tmp_path, "apple", Skill(name="apple", body="Peel."))
    assert output.text == "# Skill: apple\n\nPeel."
    assert output.read == ()


async def test_an_edit_counts_for_the_next_call(tmp_path: Path) -> None:
    file = write(tmp_path / ".opencode/skills/apple.md", "old")
    async with opened(tmp_path) as host:
        turn = materialize(host.location.read)
        before = await call(host, "apple")
        write(file, "new")
        after = await call(host, "apple")
    assert ("old" in str(before), "new" in str(after)) == (True, True)
    assert [each.name for each in turn.definitions] == ["skill"]


async def test_the_tool_works_for_several_calls_at_once(tmp_path: Path) -> None:
    settled: list[object] = []
    async with opened(tmp_path) as host, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: _settle(host, settled))
    assert len(settled) == 5


async def _settle(host: object, settled: list[object]) -> None:
    settled.append(await call(host, CONFIGURING))  # type: ignore[arg-type]
