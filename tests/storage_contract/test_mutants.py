"""The suite notices each backend that breaks a law, and says which."""

import inspect
from pathlib import Path

import pytest

from plugin_sdk.storage import StorageClosedError
from plugin_sdk.testing import StorageContract
from tests.storage_contract import mutants
from tests.storage_contract.wrapped import WrappedStorage

MUTANTS = [
    mutant
    for mutant in vars(mutants).values()
    if inspect.isclass(mutant) and issubclass(mutant, WrappedStorage) and mutant.caught_by
]


def contract_of(kind: type[WrappedStorage], patience: float) -> StorageContract:
    """Returns the suite for a backend."""

    class Contract(StorageContract, factory=kind.opened, url="memory:", durable=False, shared=False): ...

    Contract.patience = patience
    return Contract()


async def run(contract: StorageContract, name: str, tmp_path: Path) -> None:
    """Runs one test of the suite as pytest would."""
    test = getattr(contract, name)
    wanted = inspect.signature(test).parameters
    if "storage" not in wanted:
        await test(**{name: value for name, value in given(tmp_path).items() if name in wanted})
        return
    async with contract.opened("memory:") as storage:
        await test(**{name: value for name, value in {**given(tmp_path), "storage": storage}.items() if name in wanted})


def given(tmp_path: Path) -> dict[str, object]:
    return {"storage_url": "memory:", "tmp_path": tmp_path}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
async def test_a_backend_that_breaks_a_law_is_caught(mutant: type[WrappedStorage], tmp_path: Path) -> None:
    told: tuple[type[Exception], str] = (AssertionError, "^The law of .* is broken: ")
    kind, words = told if mutant.names_the_law else (StorageClosedError, "closed")
    with pytest.raises(kind, match=words):
        await run(contract_of(mutant, patience=0.3), mutant.caught_by, tmp_path)


@pytest.mark.parametrize("name", sorted({mutant.caught_by for mutant in MUTANTS}))
async def test_a_backend_that_keeps_the_laws_passes_the_tests_that_catch_others(name: str, tmp_path: Path) -> None:
    await run(contract_of(WrappedStorage, patience=30), name, tmp_path)


def test_a_stranger_whose_backend_is_wrong_is_told_which_law_is_broken(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from plugin_sdk.testing import StorageContract
        from tests.storage_contract.mutants import IgnoresAfterInReverse

        class TestMine(
            StorageContract, factory=IgnoresAfterInReverse.opened, url="memory:", durable=False, shared=False
        ): ...
        """
    )
    pytester.makeini("[pytest]\nstrict = true")
    pytester.syspathinsert(Path(__file__).parents[2])
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-k", "scan or wakes")
    loops = 2
    result.assert_outcomes(failed=2 * loops, passed=10 * loops, skipped=2 * loops, deselected=63 * loops)
    result.stdout.fnmatch_lines(["*The law of order is broken: scan('scans', (), after=*reverse=True); wanted*"])
