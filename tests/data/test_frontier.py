"""Steps past the last known state: by definition, by hand, and what a promise makes of them."""

import numpy as np
import pytest

from surefoot import LearnedPosterior, certify, read_transitions
from surefoot.data import frontier
from surefoot.data.destination_pools import FEWEST_ROWS
from surefoot.data.destinations import MOVES, PARTS, learn_destinations
from surefoot.data.state_order import state_numbers


def by_definition(counts):
    """Return the share of steps past the edge, row by row."""
    rows = {}
    for e in np.flatnonzero(counts.count > 0):
        place = (int(counts.entry_state[e]), int(counts.entry_action[e]))
        rows.setdefault(place, {})[int(counts.successor[e])] = int(counts.count[e])
    number = state_numbers(counts.state_labels, counts.num_states)
    low, high = np.nanmin(number), np.nanmax(number)
    share = {}
    for action in {a for _, a in rows}:
        steps = {}
        for (s, a), shown in rows.items():
            for t, n in shown.items() if a == action else ():
                if not np.isnan(number[[s, t]]).any():
                    steps.setdefault(number[t] - number[s], []).append(n)
        for step, times in steps.items():
            if len(times) >= FEWEST_ROWS:
                tries = sum(
                    sum(shown.values())
                    for (s, a), shown in rows.items()
                    if a == action and low <= number[s] + step <= high
                )
                share[action, step] = sum(times) / tries

    def beyond(place, step, side):
        aim = number[place[0]] + step
        return aim > high if side > 0 else aim < low

    found = {}
    open_sides = [
        side
        for side in (1, -1)
        if sum(
            f * sum(rows[place].values())
            for place in rows
            for (a, step), f in share.items()
            if a == place[1] and beyond(place, step, side)
        ) < frontier.WALL
    ]  # fmt: skip
    for place, shown in rows.items():
        tries, past, inside = sum(shown.values()), 0.0, 0.0
        for (a, step), f in share.items():
            if a != place[1] or np.isnan(number[place[0]]):
                continue
            hidden = f * (1 - f) ** tries
            at = np.flatnonzero(number == number[place[0]] + step)
            if any(beyond(place, step, side) for side in open_sides):
                past += hidden
            elif len(at) and int(at[0]) not in shown:
                inside += hidden
        found[place] = past / (past + inside) if past else 0.0
    return np.array([found[s, a] for s, a in zip(counts.row_state, counts.row_action, strict=True)])


def walk(steps, rng, states=12, label="bin {}"):
    """A log of random walks between walls, or with states that nobody reached."""
    state, action, following = [], [], []
    now = 0
    for _ in range(steps):
        a = int(rng.integers(2))
        step = int(rng.choice([0, 1, 2], p=[0.4, 0.5, 0.1])) if a == 0 else -int(rng.integers(4))
        then = min(max(now + step, 0), states - 1)
        state.append(label.format(now))
        action.append(a)
        following.append(label.format(then))
        now = then
    return {"state": state, "action": action, "reward": np.zeros(steps), "next_state": following}


@pytest.mark.parametrize("steps", [30, 60, 150, 400])
@pytest.mark.parametrize("label", ["bin {}", "{}"])
def test_shares_by_definition(steps, label):
    for seed in range(4):
        log = walk(steps, np.random.default_rng(seed), label=label)
        log["state"] = [str(s) for s in log["state"]]
        counts = read_transitions(log)
        np.testing.assert_allclose(learn_destinations(counts).beyond, by_definition(counts))


def test_a_wall_is_a_wall():
    """With many tries at the edge that never went past it, nothing is expected there."""
    counts = read_transitions(walk(4000, np.random.default_rng(0)))
    assert not learn_destinations(counts).beyond.any()


def test_names_have_no_edge():
    names = ["ash", "birch", "cedar", "dogwood"]
    log = {
        "state": names[:3] * 3, "action": [0] * 9, "reward": [0.0] * 9,
        "next_state": names[1:] * 3,
    }  # fmt: skip
    assert not learn_destinations(read_transitions(log)).beyond.any()


def test_steps_past_the_edge_lead_to_the_unseen():
    counts = read_transitions(walk(60, np.random.default_rng(1)))
    posterior = LearnedPosterior(counts)
    found, placed = posterior.destinations, posterior.counts
    row = int(np.argmax(found.beyond))
    assert found.beyond[row] > 0.2
    at = row * (len(PARTS) + 1) + MOVES
    listed = slice(found.start[at], found.start[at + 1])
    weight = dict(zip(found.state[listed].tolist(), found.weight[listed].tolist(), strict=True))
    assert weight[placed.unseen] == pytest.approx(found.beyond[row])
    assert sum(weight.values()) == pytest.approx(1.0)


def test_resting_at_the_edge_is_no_safe_place(monkeypatch):
    """A bus was run on twice at the edge and stayed: nobody knows what comes next.

    Taken at its word, running for ever costs .7 a month. A quarter of the models should know
    better, and pay the worst that the log has shown.
    """
    rng = np.random.default_rng(3)
    rows = []
    for state in range(7):
        for _ in range(30 if state < 5 else 8):
            rows.append((state, "run", min(state + int(rng.random() < 0.6), 7), -0.1 * state))
            rows.append((state, "repair", int(rng.random() < 0.6), -9.0))
    rows += [(7, "run", 7, -0.7)] * 2 + [(7, "repair", 0, -9.0)] * 4
    names = ("state", "action", "next_state", "reward")
    log = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    def promised():
        posterior = LearnedPosterior(read_transitions(log))
        mdp = posterior.to_mdp(discount=0.98)
        run = mdp.action_labels.index("run")
        run_on = np.where(mdp.available[:, run], run, 1 - run)
        options = {"delta": 0.05, "draws": 2000, "rng": np.random.default_rng(0)}
        return certify(run_on, posterior, mdp, **options).lower_bound

    with_edge = promised()
    monkeypatch.setattr(frontier, "WALL", 0.0)
    taken_at_its_word = promised()
    assert with_edge < taken_at_its_word - 30.0, (with_edge, taken_at_its_word)
