"""The answer of the Fit tab: candidates by step and choice, and the largest value that fits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fits import GIB, STEP, V5E, candidate, raised, reserving, write_candidate, write_program, write_search
from werkzeug.test import Client

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.fit import LargestValue, Outcome
from tb_memplugin.model.kinds import Role
from tb_memplugin.questions.asking.source import FitOutcomes
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.fit.page import FitJson, fit
from tb_memplugin.questions.fit.words import lines


def answered(*outcomes: Outcome) -> FitJson:
    return fit(report_source([], [], candidates=FitOutcomes(outcomes)).runs)


def fetched(logs: Path) -> dict[str, Any]:
    answer = Client(MemoryApp(Catalog(str(logs)))).get("/api/fit")
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.data)
    return found


def test_a_search_has_a_choice_for_each_target_knob_and_change(tmp_path: Path) -> None:
    write_search(tmp_path)
    [step] = fetched(tmp_path)["steps"]
    assert (step["step"], step["searched"]) == (STEP, "batch")
    by_choice = {
        (choice["knobs"]["remat"], *choice["changes"]): [
            None if choice[key] is None else step["candidates"][choice[key]]["value"]
            for key in ("candidate", "without_recomputation")
        ]
        for choice in step["choices"]
    }
    assert by_choice == {
        ("dots",): [None, None],
        ("full",): [8, 8],
        ("none",): [172, 172],
        ("none", "donate:state"): [190, 190],
    }
    assert step["headline"].startswith(
        "172 is the largest batch that fits on v5e:2x2 (remat=none): it reserves 3.698 GiB"
    )
    assert step["headline"].endswith(
        "is left. With a change (remat=none, donate state) it is 190, the end of the range."
    )
    for number, choice in enumerate(step["choices"]):
        values = [one["value"] for one in step["candidates"] if one["choice"] == number]
        assert values == sorted(values)
        assert {key: choice[key] for key in ("target", "knobs", "changes")} in [
            {key: one[key] for key in ("target", "knobs", "changes")} for one in step["candidates"]
        ]


def test_figures_are_those_of_memory_viewer(tmp_path: Path) -> None:
    write_program(tmp_path, candidate(batch=8), "v5e_train_step")
    [step] = fetched(tmp_path)["steps"]
    [one] = step["candidates"]
    [program] = [r for r in listing_of_path(str(tmp_path)).recordings if r.run == one["run"] and r.is_main_memory]
    assert (one["reserved_bytes"], one["peak_bytes"]) == (reserved_bytes(program), peak(program).bytes)
    assert sum(role["bytes"] for role in one["roles"]) == one["peak_bytes"]
    client = Client(MemoryApp(Catalog(str(tmp_path))))
    [listed] = [
        recording
        for recording in json.loads(client.get("/api/recordings", query_string={"run": one["run"]}).data)["recordings"]
        if recording["id"] == program.id
    ]
    assert (listed["reserved_bytes"], listed["peak_bytes"]) == (one["reserved_bytes"], one["peak_bytes"])
    assert listed["capacity_bytes"] == one["capacity_bytes"] == V5E


def test_the_largest_value_without_recomputation_is_beside_the_largest() -> None:
    sizes = {8: 0, 48: 0, 52: 7, 172: 71}
    found = answered(*(reserving(candidate(batch=batch), 10, repeated) for batch, repeated in sizes.items()))
    [step] = found["steps"]
    [choice] = step["choices"]
    assert choice["candidate"] is not None
    assert choice["without_recomputation"] is not None
    assert step["candidates"][choice["candidate"]]["value"] == 172
    assert step["candidates"][choice["without_recomputation"]]["value"] == 48


def test_doubtful_values_above_one_that_is_certain_are_no_answer_where_one_was_refused() -> None:
    certain = reserving(candidate(batch=8), 15)
    doubtful = replace(reserving(candidate(batch=9), 15.2), doubtful=True)
    refused = replace(reserving(candidate(batch=10), 15.4), refused="RESOURCE_EXHAUSTED")

    def largest(*outcomes: Outcome) -> Any:
        step = answered(*outcomes)["steps"][0]
        assert step["choices"][0]["candidate"] is not None
        return step["candidates"][step["choices"][0]["candidate"]]["value"]

    assert answered(refused)["steps"][0]["candidates"][0]["error"] == "RESOURCE_EXHAUSTED"
    assert largest(certain, doubtful) == 9
    assert largest(certain, doubtful, refused) == 8
    assert largest(doubtful, refused) == 9


def test_sentences_are_those_of_the_terminal() -> None:
    found = answered(
        *(reserving(candidate(batch=batch), batch / 10) for batch in (10, 20, 100)),
        reserving(candidate(batch=120), 14, 7),
        reserving(candidate(batch=128), 17, 9),
    )
    [choice] = found["steps"][0]["choices"]
    [line] = choice["sentences"]
    assert line.endswith(
        "per item of batch up to 100; above, XLA recomputes: 7 instructions at 120 (7.0% of the operations)"
    )
    assert line.startswith("64.00 MiB fixed")


def test_a_change_that_adds_nothing_to_another_is_not_in_the_headline() -> None:
    both = ("donate:state", "option:a=1")
    found = answered(
        reserving(candidate(batch=8), 9),
        reserving(candidate(batch=12, changes=both), 8),
        reserving(candidate(batch=12, changes=both[:1]), 9),
    )
    assert found["steps"][0]["headline"].endswith("With a change (donate state) it is 12, the end of the range.")


def test_a_largest_value_at_the_end_of_the_range_is_marked() -> None:
    fits = [reserving(candidate(batch=batch), 9) for batch in (8, 256)]
    [step] = answered(*fits)["steps"]
    assert step["choices"][0]["at_end"]
    assert step["headline"].endswith(" is left. No larger batch was compiled, so a larger one may fit.")
    [step] = answered(*fits, reserving(candidate(batch=320), 17))["steps"]
    assert not step["choices"][0]["at_end"]
    assert "may fit" not in step["headline"]


def test_of_equal_values_the_headline_names_the_one_with_the_most_memory_left() -> None:
    found = answered(reserving(candidate(remat="none", batch=8), 9), reserving(candidate(remat="full", batch=8), 3))
    assert "(remat=full)" in found["steps"][0]["headline"]


def test_without_a_search_each_candidate_is_a_choice() -> None:
    found = answered(reserving(candidate(remat="none"), 20), reserving(candidate(remat="full"), 5))
    [step] = found["steps"]
    assert step["searched"] == ""
    assert step["headline"] == "1 of 2 candidates fits on v5e:2x2."
    assert [(choice["knobs"]["remat"], choice["candidate"]) for choice in step["choices"]] == [
        ("full", 0),
        ("none", None),
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("donate:state,cache", "donate state,cache"),
        ("shard:data:params,state['x:y']", "shard params,state['x:y'] over data"),
        ("drop-unused", "drop unused arguments"),
        ("option:xla_flag=2", "xla_flag=2"),
        ("set:microbatches=2", "microbatches=2"),
        ("novel:x", "novel:x"),
        ("donate:", "donate:"),
    ],
)
def test_changes_are_in_words(change: str, text: str) -> None:
    [step] = answered(reserving(candidate(batch=8, changes=(change,)), 1))["steps"]
    assert [step["choices"][0]["change"], step["candidates"][0]["change"]] == [text, text]
    assert step["candidates"][0]["changes"] == [change]


def test_a_candidate_compiled_alone_is_a_point_of_its_steps_search() -> None:
    alone = Outcome(candidate(batch=16).candidate, reserved_bytes=GIB, peak_bytes=GIB)
    [step] = answered(alone, reserving(candidate(batch=8), 1))["steps"]
    assert [(one["value"], one["choice"]) for one in step["candidates"]] == [(8, 0), (16, 0)]


def test_steps_are_apart_and_none_that_fits_is_said() -> None:
    found = answered(
        reserving(candidate(batch=8), 20),
        raised(candidate(batch=7)),
        reserving(candidate(step="other.py:step", batch=8), 1),
    )
    assert [step["step"] for step in found["steps"]] == [STEP, "other.py:step"]
    assert found["steps"][0]["headline"] == "None of 2 candidates fits on v5e:2x2."


@pytest.mark.parametrize(("count", "more"), [(3, ""), (5, "2 more targets below.")])
def test_each_target_has_a_sentence(count: int, more: str) -> None:
    targets = ["v5e:2x2", "v5e:2x4", "v5e:4x4", "v5e:4x8", "v5e:8x8"][:count]
    [step] = answered(*(reserving(candidate(target, batch=8), 1) for target in targets))["steps"]
    assert step["headline"].count("largest batch") == 3
    assert step["headline"].endswith(more or "a larger one may fit.")


def test_roles_that_this_version_lacks_are_unknown() -> None:
    outcome = Outcome(candidate().candidate, roles={"optimizer_state": 3, "novel": 4, "mystery": 1})
    [step] = answered(outcome)["steps"]
    roles = {Role(role["role"]).name: role["bytes"] for role in step["candidates"][0]["roles"]}
    assert roles == {"UNKNOWN": 5, "OPTIMIZER_STATE": 3}


def test_a_logdir_without_a_fit_has_no_steps(tmp_path: Path) -> None:
    assert fetched(tmp_path) == {"steps": [], "problems": []}


def test_a_damaged_record_is_a_problem(tmp_path: Path) -> None:
    write_candidate(tmp_path, reserving(candidate(batch=8), 1))
    (tmp_path / "fit.json").write_text("{}")
    found = fetched(tmp_path)
    assert [len(step["candidates"]) for step in found["steps"]] == [1]
    assert "Not a record of a fit" in found["problems"][0]["text"]


def test_the_fastest_choice_is_named_where_times_differ() -> None:
    def choice(remat: str, seconds: float) -> LargestValue:
        outcome = replace(reserving(candidate(remat=remat, batch=8), 4), step_seconds=seconds, utilization=0.3)
        return LargestValue("v5e:2x2", (("remat", remat),), "batch", outcome, outcome)

    text = "\n".join(lines([choice("none", 0.2), choice("full", 0.1)], ["remat"]))
    assert "Fastest, as estimated: full, with 2.0 times as many batch/s as none" in text
    assert "200 ms            40" in text and "100 ms            80" in text
    assert "Fastest" not in "\n".join(lines([choice("none", 0.101), choice("full", 0.1)], ["remat"]))
