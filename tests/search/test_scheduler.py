"""Which generator works next: shares, the bandit, and generators that wait."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.generation.builtin import SPECS
from physdiffuser.search.scheduler import DEFERRED_TURN, MEMORY, TURN, Scheduler

OPENING = (("enumeration", 7), ("sparse", 8), ("enumeration", 23))
SHARES = {"enumeration": 0.45, "sparse": 0.2}


def scheduler_of(names: list[str], deferred: Collection[str] = ()) -> Scheduler:
    """A scheduler for the built-in generators and others."""
    return Scheduler(names, deferred, SPECS)


def run(scheduler: Scheduler, turns: int, gains: dict[str, float] | None = None) -> list[tuple[str, int]]:
    """So many turns, each paid as its generator always is."""
    taken = []
    for _ in range(turns):
        turn = scheduler.next()
        assert turn is not None
        taken.append(turn)
        scheduler.record(*turn, (gains or {}).get(turn[0], 0.0))
    return taken


def after_opening(names: list[str], gains: dict[str, float] | None = None) -> Scheduler:
    """A scheduler whose generators have each had their first turns."""
    scheduler = scheduler_of(names)
    opening = sum(name in names for name, _ in OPENING)
    run(scheduler, opening + sum(name not in dict(OPENING) for name in names), gains)
    return scheduler


def test_the_first_turns_are_the_opening_and_then_one_for_each_other_generator() -> None:
    scheduler = scheduler_of(["evolution", "enumeration", "plugin", "sparse"])
    first = run(scheduler, len(OPENING) + 2)
    assert tuple(first) == (*OPENING, ("evolution", TURN), ("plugin", TURN))


def test_turns_of_absent_or_finished_generators_are_left_out_of_the_opening() -> None:
    assert run(scheduler_of(["sparse", "other"]), 2) == [("sparse", 8), ("other", TURN)]
    scheduler = scheduler_of(["enumeration", "sparse"])
    run(scheduler, 1)
    scheduler.finish("sparse")
    assert scheduler.next() == OPENING[2]


def test_nothing_is_next_when_all_have_finished() -> None:
    scheduler = scheduler_of(["a", "b"])
    scheduler.finish("a")
    assert scheduler.next() == ("b", TURN)
    scheduler.finish("b")
    assert scheduler.next() is None
    assert scheduler_of([]).next() is None


@pytest.mark.parametrize("name", SHARES)
def test_a_share_is_granted_however_little_it_pays(name: str) -> None:
    """The other finds much in every turn, and must not take more than the share leaves."""
    scheduler = after_opening([name, "paying"])
    taken = run(scheduler, 400, {"paying": 100.0})
    share = sum(steps for who, steps in taken if who == name) / sum(steps for _, steps in taken)
    assert share == pytest.approx(SHARES[name], abs=0.05)


def test_shares_are_of_the_steps_of_those_that_have_work_left() -> None:
    scheduler = after_opening(["enumeration", "sparse", "done"])
    for _ in range(100):
        scheduler.record("done", 100, 0.0)
    scheduler.finish("done")
    taken = run(scheduler, 200)
    steps = {name: sum(s for who, s in taken if who == name) for name in ("enumeration", "sparse")}
    assert steps["sparse"] > 0.15 * sum(steps.values())
    assert steps["enumeration"] > 0.4 * sum(steps.values())


def test_a_generator_below_its_share_comes_before_the_bandit() -> None:
    scheduler = after_opening(["enumeration", "b"])
    spent = scheduler.steps
    # Exactly its share is enough; one step below is not.
    missing = spent["enumeration"] / SHARES["enumeration"] - spent["enumeration"] - spent["b"]
    scheduler.record("b", math.floor(missing), 1e6)
    assert scheduler.next() == ("b", TURN)
    scheduler.record("b", 2, 1e6)
    assert scheduler.next() == ("enumeration", TURN)


def reference(history: dict[str, list[tuple[int, float]]]) -> str:
    """The bandit by its definition: decayed mean of log gains a step, and a bonus for few turns."""
    rates = {}
    for name, turns in history.items():
        rate = 0.0
        for steps, gain in turns:
            rate = MEMORY * rate + (1 - MEMORY) * math.log1p(max(gain, 0.0)) / max(steps, 1)
        rates[name] = rate
    best = max(rates.values()) or 1.0
    total = sum(map(len, history.values()))
    return max(
        history, key=lambda name: rates[name] / best + math.sqrt(2 * math.log(total) / len(history[name]))
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_bandit_follows_its_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    scheduler = scheduler_of(names)
    history: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    for count in range(60):
        turn = scheduler.next()
        assert turn is not None and turn[1] == TURN
        name = turn[0]
        assert name == (names[count] if count < 3 else reference(history))
        steps = int(random.integers(0, 9))
        gain = float(random.choice([-3.0, 0.0, 5.0, 300.0]) * (1.0 + names.index(name)))
        scheduler.record(name, steps, gain)
        history[name].append((steps, gain))
    assert scheduler.steps == {name: sum(steps for steps, _ in history[name]) for name in names}


def test_deferred_generators_wait_until_admitted_and_keep_their_order() -> None:
    scheduler = scheduler_of(["a", "slow", "slower"], {"slow", "slower"})
    assert {name for name, _ in run(scheduler, 40)} == {"a"}
    assert scheduler.admit()
    assert [scheduler.next(), scheduler.next()] == [("slow", DEFERRED_TURN), ("slower", DEFERRED_TURN)]
    assert not scheduler.admit()


def test_admitted_generators_come_before_what_is_left_of_the_opening() -> None:
    scheduler = scheduler_of(["enumeration", "slow"], {"slow"})
    run(scheduler, 1)
    scheduler.admit()
    assert scheduler.next() == ("slow", DEFERRED_TURN)
    assert scheduler.next() == OPENING[2]


def test_an_admitted_generator_that_has_finished_gets_no_turn() -> None:
    scheduler = scheduler_of(["a", "slow"], {"slow"})
    scheduler.admit()
    scheduler.finish("slow")
    assert scheduler.next() == ("a", TURN)


def test_nothing_is_next_while_all_that_is_left_waits() -> None:
    scheduler = scheduler_of(["a", "slow"], {"slow"})
    scheduler.finish("a")
    assert scheduler.next() is None
    assert scheduler.admit() and scheduler.next() == ("slow", DEFERRED_TURN)


def spec(name: str, **declared: Any) -> GeneratorSpec:
    return GeneratorSpec(name, dict, **declared)  # type: ignore[arg-type]


def test_what_a_plugin_declares_counts_as_much_as_what_is_built_in() -> None:
    plugin = spec("plugin", share=0.6, opening=(3, 4))
    scheduler = Scheduler(["enumeration", "plugin", "other"], specs=[*SPECS, plugin])
    first = run(scheduler, 5)
    assert first == [("enumeration", 7), ("plugin", 3), ("enumeration", 23), ("plugin", 4), ("other", TURN)]
    taken = run(scheduler, 300, {"other": 100.0})
    assert sum(steps for who, steps in taken if who == "plugin") / sum(
        steps for _, steps in taken
    ) == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
    "declared", [{"role": "late"}, {"share": 1.0}, {"share": -0.1}, {"opening": (0,)}, {"opening": (1.5,)}]
)
def test_a_spec_out_of_range_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        spec("plugin", **declared)
