"""Records of fits in a logdir: beside programs and alone, never outside of it; a damaged one costs only itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.fits import TRACEBACK, candidate, raised, record_text, reserving, write_candidate, write_program
from support.growth import grows_linearly

from tb_memplugin import logdir
from tb_memplugin.catalog import catalog as catalog_module
from tb_memplugin.catalog import fit_records
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.fit_records import records_of_path
from tb_memplugin.errors import InputError


def test_a_record_is_found_beside_a_program_and_alone(tmp_path: Path) -> None:
    compiled = write_program(tmp_path / "monday", candidate(batch=8), "v5e_train_step")
    write_candidate(tmp_path, raised(candidate(batch=7)))
    found = {outcome.run: outcome for outcome in Catalog(str(tmp_path)).fit().outcomes}
    assert set(found) == {f"monday/{compiled.run}", "fit_gpt.step_v5e-2x2_batch-7"}
    assert found[f"monday/{compiled.run}"].reserved_bytes == compiled.reserved_bytes
    assert found["fit_gpt.step_v5e-2x2_batch-7"].traceback == TRACEBACK
    assert [run.name for run in Catalog(str(tmp_path)).runs()] == [f"monday/{compiled.run}"]


def test_records_without_any_program_are_no_runs_and_still_found(tmp_path: Path) -> None:
    write_candidate(tmp_path, raised(candidate(batch=7)))
    with pytest.raises(InputError, match="No profile found"):
        Catalog(str(tmp_path)).runs()
    assert [outcome.candidate.target for outcome in Catalog(str(tmp_path)).fit().outcomes] == ["v5e:2x2"]
    assert logdir.has_runs(str(tmp_path)), "TensorBoard shows the page where there is something to see"


def test_records_of_several_logdirs_have_their_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_candidate(tmp_path / name, reserving(candidate(batch=8), 1))
    found = Catalog({"a": str(tmp_path / "a"), "b": str(tmp_path / "b")}).fit()
    assert sorted(outcome.run for outcome in found.outcomes) == [
        "a/fit_gpt.step_v5e-2x2_batch-8",
        "b/fit_gpt.step_v5e-2x2_batch-8",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        record_text(seconds=float("nan")),
        record_text().replace("2.5", "1e999"),
        record_text(knobs={"batch": float("inf")}),
        record_text(knobs={"batch": [1]}),
        record_text(knobs={"batch": 1 << 80}),
        record_text(knobs={str(number): 1 for number in range(1000)}),
        record_text(peak_bytes=-1),
        record_text(peak_bytes=1 << 60),
        record_text(roles_bytes=[1]),
        record_text(step=None),
        '{"step": 1' + "0" * 10_000 + "}",
    ],
)
def test_a_damaged_record_is_a_problem_beside_the_others(tmp_path: Path, text: str) -> None:
    write_candidate(tmp_path, reserving(candidate(batch=8), 1))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "fit.json").write_text(text)
    found = Catalog(str(tmp_path)).fit()
    assert [outcome.run for outcome in found.outcomes] == ["fit_gpt.step_v5e-2x2_batch-8"]
    [problem] = found.problems
    assert problem.file.endswith("damaged/fit.json")
    assert "Not a record of a fit" in problem.text


def test_size_and_number_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in range(4):
        write_candidate(tmp_path, reserving(candidate(batch=batch), 1))
    monkeypatch.setattr(fit_records, "MAX_RECORDS", 3)
    found = records_of_path(str(tmp_path))
    assert len(found.outcomes) == 3
    assert "1 more candidate is not listed" in found.problems[0].text
    large = tmp_path / "large" / "fit.json"
    large.parent.mkdir()
    large.write_text(record_text(error="x" * (2 << 20)))
    [problem] = records_of_path(str(large.parent)).problems
    assert "too large" in problem.text


def test_links_lead_nowhere_outside(tmp_path: Path) -> None:
    outside = write_candidate(tmp_path / "outside", reserving(candidate(batch=8), 1))
    inside = write_candidate(tmp_path / "logs", reserving(candidate(batch=16), 1))
    for name, target in (("out", outside), ("in", inside)):
        (tmp_path / "logs" / name).mkdir()
        (tmp_path / "logs" / name / "fit.json").symlink_to(target / "fit.json")
    (tmp_path / "logs" / "folder").symlink_to(outside)
    os.mkfifo(tmp_path / "logs" / "fit.json")
    assert sorted(outcome.run for outcome in Catalog(str(tmp_path / "logs")).fit().outcomes) == sorted(
        ["in", inside.name]
    )


def test_the_list_of_runs_and_of_candidates_take_one_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path, candidate(batch=8), "v5e_train_step")
    catalog, find_all = Catalog(str(tmp_path)), logdir.find_all
    searches: list[str] = []

    def counted(root: str) -> object:
        searches.append(root)
        return find_all(root)

    monkeypatch.setattr(logdir, "find_all", counted)
    catalog.runs()
    assert len(catalog.fit().outcomes) == 1
    assert len(searches) == 1
    write_candidate(tmp_path, reserving(candidate(batch=16), 1))
    monkeypatch.setattr(catalog_module, "FRESH_SECONDS", -1)
    assert len(catalog.fit().outcomes) == 2, "a new candidate is found without a new list of runs"


def test_a_changed_record_is_read_again(tmp_path: Path) -> None:
    record = write_candidate(tmp_path, reserving(candidate(batch=8), 1)) / "fit.json"
    before = records_of_path(str(tmp_path)).outcomes[0]
    found = json.loads(record.read_text())
    record.write_text(json.dumps({**found, "seconds": 77.0}))
    assert records_of_path(str(tmp_path)).outcomes[0].seconds == 77.0 != before.seconds


def test_the_time_to_read_candidates_is_linear_in_their_number(tmp_path: Path) -> None:
    sizes = (40, 320)
    for size in sizes:
        for batch in range(size):
            write_candidate(tmp_path / str(size), reserving(candidate(batch=batch), 1))

    def read(size: int) -> None:
        assert len(Catalog(str(tmp_path / str(size))).fit().outcomes) == size

    assert grows_linearly(read, sizes[0])


def test_an_older_record_names_the_bytes_by_role_differently(tmp_path: Path) -> None:
    write_candidate(tmp_path, reserving(candidate(batch=8), 1))
    (record,) = tmp_path.rglob("fit.json")
    found = json.loads(record.read_text())
    del found["roles_bytes"]
    record.write_text(json.dumps({**found, "roles": {"gradient": 5}}))
    (outcome,) = Catalog(str(tmp_path)).fit().outcomes
    assert outcome.roles == {"gradient": 5}
