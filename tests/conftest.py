"""Fixtures shared by several test folders, marks, a random order, and a guard of the checkout."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from compileall import compile_dir
from typing import Any

import pytest
import support.strict_where
import support.without_iris  # noqa: F401  # before what imports jsonschema
from hypothesis import HealthCheck, is_hypothesis_test, settings
from support.checkout import Guard
from support.hook_environment import environment as environment
from support.order import arrange, number_of_workers, scheduler
from support.reach import needs_shared_data, reaches_slow_modules
from support.servers import DEMO, REPOSITORY

from tb_memplugin.errors import FAILURES
from tb_memplugin.executors import available_cores

GUARD = pytest.StashKey[Guard]()
# Examples may take as long as busy cores need.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=int, metavar="SEED", help="run tests in the order that a run printed; 0: by file")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.order is None:
        config.option.order = getattr(config, "workerinput", {}).get("order", random.randrange(1, 1_000_000))
    config.option.loadscopereorder = False  # it would sort groups by their number of tests
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        # Hundreds of processes that tests start import the package, and write no bytecode: each would compile it again.
        compile_dir(REPOSITORY / "tb_memplugin", quiet=2, workers=available_cores())
    if not is_worker and config.getoption("numprocesses", None):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # so that workers keep what pytest makes of tests and plugins
    else:
        # Neither tests nor processes that they start leave bytecode in folders that tests look at.
        sys.dont_write_bytecode = False
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the seed to a worker."""
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of tests: --order={config.option.order}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return number_of_workers(available_cores())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return scheduler(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    sys.dont_write_bytecode = True
    session.stash[GUARD] = Guard(REPOSITORY, DEMO.parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Fail a test that writes into the checkout. Servers of a module are found out after its last test."""
    yield
    last = nextitem is None or nextitem.path != item.path
    if problems := item.session.stash[GUARD].problems(compare=last):
        pytest.fail("\n".join(["tests must not write into the checkout, nor into the demo:", *problems]), pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what tests compile and read out of the user's cache folder."""
    for name in ("FIT", "FLEET"):
        os.environ[f"TB_MEMPLUGIN_{name}_CACHE"] = str(tmp_path_factory.mktemp(name) / "cache")


@pytest.fixture(autouse=True)
def _failures_are_logged() -> Iterator[None]:
    """Undo what commands do to their process: they print a line for each failure in place of logging it."""
    yield
    FAILURES.disabled = False


@pytest.hookimpl(tryfirst=True)  # before pytest brings together tests of one parameter of a session's fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function):
            if needs_shared_data(item):
                item.add_marker(pytest.mark.shared_data)
            # Property tests run a hundred examples each.
            if reaches_slow_modules(item) or is_hypothesis_test(item.function):
                item.add_marker(pytest.mark.slow)
    arrange(items, config.option.order)
