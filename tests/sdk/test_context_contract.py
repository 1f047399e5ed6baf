"""The suite for context sources passes what is right, and says which law each wrong one breaks."""

import inspect
from pathlib import Path

import pytest

from plugin_sdk.testing import ContextSourceContract
from plugins_builtin import date, environment
from tests.sdk import context_mutants
from tests.sdk.context_mutants import FILE, HasNoRemovedText, Right

MUTANTS = [
    mutant
    for mutant in vars(context_mutants).values()
    if inspect.isclass(mutant) and issubclass(mutant, Right) and mutant.caught_by
]
KEY = "test/branch"
ELSEWHERE = "test_an_unchanged_world_gives_the_same_value_in_another_process"


class Branches(ContextSourceContract):
    """The world of a file that says a branch."""

    __test__ = False

    def prepare(self, directory: Path) -> None:
        (directory / FILE).write_text("main")

    def change(self, directory: Path) -> None:
        (directory / FILE).write_text("feature/login")

    def take_away(self, directory: Path) -> None:
        (directory / FILE).unlink()


class TestASourceThatIsRight(Branches, plugin=Right(), key=KEY):
    __test__ = True


class TestOneThatIsToldAnewWhenItIsGone(Branches, plugin=HasNoRemovedText(), key=KEY, removable=False):
    __test__ = True


class TestDate(ContextSourceContract, plugin=date, key="core/date", removable=False):
    def change(self, directory: Path) -> None:
        self.clock.move(days=1)


class TestDateElsewhere(TestDate, options={"timezone": "Asia/Tokyo"}): ...


class TestEnvironment(ContextSourceContract, plugin=environment, key="core/environment", removable=False): ...


def contract_of(kind: type[Right], patience: float) -> ContextSourceContract:
    """Returns the suite for a plugin."""

    class Contract(Branches, plugin=kind(), key=KEY, removable=kind.removable): ...

    Contract.patience = patience
    return Contract()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
async def test_a_source_that_breaks_a_law_is_caught(mutant: type[Right], tmp_path: Path) -> None:
    contract = contract_of(mutant, patience=0.1)
    with pytest.raises(AssertionError, match=f"^The law of {mutant.law} is broken: .*{mutant.says}"):
        await getattr(contract, mutant.caught_by)(contract.world(tmp_path))


def test_every_law_has_a_mutant_that_it_catches() -> None:
    laws = {name for name, _ in inspect.getmembers(ContextSourceContract) if name.startswith("test_")}
    assert laws - {mutant.caught_by for mutant in MUTANTS} == {ELSEWHERE}


@pytest.mark.parametrize(
    ("loads", "baseline", "words"),
    [
        ("list(WORDS)", "str(value)", "nothing changed, but the value"),
        ("sorted(WORDS)", "str(set(value))", "another process renders"),
    ],
    ids=["value", "text"],
)
def test_what_a_set_puts_in_no_order_is_caught(loads: str, baseline: str, words: str, tmp_path: Path) -> None:
    contract = contract_of_file(tmp_path, loads, baseline)
    with pytest.raises(AssertionError, match=f"^The law of sameness is broken: {words}"):
        getattr(contract, ELSEWHERE)(contract.world(tmp_path))


def test_a_world_that_another_process_cannot_see_is_not_judged(tmp_path: Path) -> None:
    contract = contract_of_file(tmp_path, "sys.only_here", "str(value)")
    with pytest.raises(pytest.skip.Exception, match="In another process there is no value to compare"):
        getattr(contract, ELSEWHERE)(contract.world(tmp_path))


@pytest.mark.parametrize(
    ("law", "missing"),
    [
        ("test_a_change_is_told_once", "change"),
        ("test_an_update_is_text_and_always_the_same", "change"),
        ("test_the_model_is_told_once_when_there_is_nothing_to_tell", "take_away"),
    ],
)
async def test_a_law_that_needs_what_the_suite_does_not_say_is_skipped(law: str, missing: str, tmp_path: Path) -> None:
    contract = TestEnvironment()
    with pytest.raises(pytest.skip.Exception, match=rf"^This suite has no '{missing}\(directory\)'"):
        await getattr(contract, law)(contract.world(tmp_path))


async def test_the_world_of_a_test_is_what_the_plugin_sees(tmp_path: Path) -> None:
    class Contract(Branches, plugin=Right(), key=KEY): ...

    contract = Contract()
    directory = contract.world(tmp_path)
    contract.environ["COLOUR"] = "blue"
    async with contract.loaded(directory) as subject:
        assert isinstance(contract.plugin, Right)
        seen = contract.plugin.scope.host
        contract.clock.move(hours=1)
        assert (seen.now().hour, dict(seen.environ), seen.config_dir) == (13, {"COLOUR": "blue"}, tmp_path / "config")
        assert subject.plugin.host.location.location.directory == directory.resolve()


def test_a_stranger_whose_source_is_wrong_is_told_which_law_is_broken(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from plugin_sdk.testing import ContextSourceContract
        from tests.sdk.context_mutants import FILE, TellsThatThereIsNothing

        class TestMine(ContextSourceContract, plugin=TellsThatThereIsNothing(), key="test/branch"):
            def prepare(self, directory):
                (directory / FILE).write_text("main")

            def take_away(self, directory):
                (directory / FILE).unlink()
        """
    )
    pytester.makeini("[pytest]\nstrict = true")
    pytester.syspathinsert(Path(__file__).parents[2])
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-k", "gone or nothing or process or told_once")
    loops, laws_without_a_loop, laws = 2, 1, 19
    result.assert_outcomes(
        failed=loops,
        passed=3 * loops,
        skipped=loops + laws_without_a_loop,
        deselected=(laws - 5) * loops,
    )
    result.stdout.fnmatch_lines(
        ["*The law of removal is broken: after 'take_away' it still has a value; return ABSENT*"]
    )


def contract_of_file(folder: Path, loads: str, baseline: str) -> ContextSourceContract:
    """Returns the suite for a plugin that is a file."""
    file = folder / "words.py"
    file.write_text(
        f"""
import sys
from plugin_sdk import ContextSource, hookimpl

WORDS = {{"one", "two", "three", "four", "five", "six"}}

async def load():
    return {loads}

@hookimpl
def opencode_context_sources():
    yield ContextSource(key="{KEY}", load=load, baseline=lambda value: {baseline}, update=lambda _before, now: str(now))
"""
    )

    class Contract(ContextSourceContract, plugin=file, key=KEY): ...

    return Contract()
