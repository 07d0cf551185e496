"""Where unseen successors may lead: each part by hand-made logs, shares, sampling, speed."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot import Counts, LearnedPosterior, read_transitions
from surefoot._rows import pack
from surefoot.data import destination_arrays, destination_pools, destinations, mixture_kernels
from surefoot.data import destination_kernels as kernels
from surefoot.data.destination_pools import FEWEST_ROWS
from surefoot.data.destination_weights import BY_ROWS
from surefoot.data.destinations import (
    ONE_STRAY,
    PARTS,
    POOLS,
    PRIOR_REST,
    PRIOR_SHARES,
    STRAYS,
    learn_destinations,
    on_entries,
)
from surefoot.data.state_order import state_numbers
from surefoot.domains.garnet import garnet

WORDS = ("ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "holly")


def log(entries, states, actions=1, labels=WORDS, terminal=()):
    """Counts of ``{(state, action, successor): count}``; words as labels have no order."""
    count = np.zeros((states, actions, states), dtype=np.int64)
    for place, number in entries.items():
        count[place] = number
    names = None if labels is None else list(labels[:states])
    found = Counts.from_arrays(count, state_labels=names)
    return replace(found, terminal=np.isin(np.arange(states), terminal)) if terminal else found


def candidates(counts, state, action, part):
    """Return ``{successor: weight}`` of one part of one row."""
    found = learn_destinations(counts)
    rows = zip(counts.row_state, counts.row_action, strict=True)
    at = len(PARTS) * list(rows).index((state, action)) + PARTS.index(part)
    listed = slice(found.start[at], found.start[at + 1])
    return dict(zip(found.state[listed].tolist(), found.weight[listed].tolist(), strict=True))


def hides(shown, tries, after):
    """What a row that showed something so often hides of it after tries of a row like it."""
    share = shown / (tries + 1)
    return share * (1 - share) ** after


def mixed(hidden, rows):
    """Shares by what rows hide, and a little by how many there are; keyed by target."""
    total, number = sum(hidden.values()), sum(rows.values())
    return {
        target: (1 - BY_ROWS) * hidden[target] / total + BY_ROWS * rows[target] / number
        for target in hidden
    }


def test_same_state_lists_what_other_actions_reached():
    counts = log({(0, 0, 1): 4, (0, 1, 2): 2, (0, 1, 3): 1, (0, 2, 3): 5, (1, 0, 4): 1}, 5, 3)
    expected = {2: hides(2, 3, 4), 3: hides(1, 3, 4) + hides(5, 5, 4)}
    assert candidates(counts, 0, 0, "same state") == pytest.approx(mixed(expected, {2: 1, 3: 2}))
    assert candidates(counts, 0, 1, "same state") == {1: 1.0}
    assert candidates(counts, 1, 0, "same state") == {}


def test_entered_needs_three_other_rows_of_the_action():
    into = {(s, 0, 5): 1 for s in range(FEWEST_ROWS)} | {(s, 0, 6): 1 for s in range(4)}
    counts = log(into | {(4, 0, 0): 3, (4, 1, 0): 1}, 7, 2)
    # Of 6, one row is known by one try; of the others both were shown by one of two tries.
    expected = {5: 3 * hides(1, 2, 2), 6: 3 * hides(1, 2, 2) + hides(1, 1, 2)}
    found = candidates(counts, 4, 0, "entered")  # three tries count as two
    assert found == pytest.approx(mixed(expected, {5: 3, 6: 4}))
    assert candidates(counts, 4, 1, "entered") == {}  # another action
    # State 3 has shown 6 itself; its candidate is 5, which three others entered.
    assert candidates(counts, 3, 0, "entered") == {5: 1.0}
    two = {place: n for place, n in into.items() if place != (0, 0, 5)}
    assert candidates(log(two | {(4, 0, 0): 3}, 7), 4, 0, "entered") == {6: 1.0}


def test_displacement_needs_numbers_and_three_other_rows():
    steps = {(s, 0, s + 2): 1 for s in range(3)} | {(4, 0, 5): 2, (7, 0, 6): 1}
    counts = log(steps, 8, labels=None)
    assert candidates(counts, 4, 0, "displacement") == {6: 1.0}
    assert candidates(counts, 7, 0, "displacement") == {}  # 9 is no state
    assert candidates(counts, 0, 0, "displacement") == {}  # it has shown the step itself
    assert candidates(log(steps, 8), 4, 0, "displacement") == {}
    named = [f"level {10 * number}" for number in range(8)]
    assert candidates(log(steps, 8, labels=named), 4, 0, "displacement") == {6: 1.0}
    shuffled = [f"level {number}" for number in (0, 3, 1, 6, 7, 2, 4, 5)]
    assert candidates(log(steps, 8, labels=shuffled), 4, 0, "displacement") == {}


def test_the_unseen_state_has_no_number_and_is_never_a_candidate():
    steps = {(s, 0, s + 1): 2 for s in range(5)} | {(5, 0, 0): 2}
    counts = log(steps, 6, labels=None)
    placed = counts.on_support("learned")
    assert placed.unseen == 6
    assert candidates(counts, 5, 0, "displacement") == {}
    assert candidates(placed, 5, 0, "displacement") == {}
    assert not np.any(learn_destinations(placed).state == placed.unseen)


def random_log(seed, states=40, actions=3, labels=None):
    rng = np.random.default_rng(seed)
    count = np.zeros((states, actions, states), dtype=np.int64)
    for s in range(states):
        for a in range(actions):
            to = (s + rng.choice([-2, -1, 0, 1, 2, 7], 3)) % states
            to = np.append(to, rng.choice(states // 4, 2))
            np.add.at(count[s, a], to, rng.integers(0, 3, len(to)))
    return Counts.from_arrays(count, state_labels=labels)


def by_definition(counts):
    """Candidates before sampling, and singletons' chances, with sets and loops."""
    rows = {}
    for e in np.flatnonzero(counts.count > 0):
        place = (int(counts.entry_state[e]), int(counts.entry_action[e]))
        rows.setdefault(place, {})[int(counts.successor[e])] = int(counts.count[e])
    number = state_numbers(counts.state_labels, counts.num_states)

    def pointing(part, place, target):
        """How often, and of how many tries, each other row has shown what points there."""
        state, action = place
        found = []
        for (s, a), shown in rows.items():
            if (s, a) == place or (part == 0 and s != state) or (part in (1, 2) and a != action):
                continue
            wanted = target
            if part == 1:
                if number is None or np.isnan(number[[state, target]]).any():
                    continue
                step = number[target] - number[state]
                wanted = next((t for t in shown if number[t] - number[s] == step), None)
            if wanted in shown:
                found.append((shown[wanted], sum(shown.values())))
        return found

    def stayed(place):
        """How many other rows of the action have stayed in their state."""
        return sum(s in found for (s, a), found in rows.items() if a == place[1] and s != place[0])

    named, open_to, pools, strays = [], [], [], []
    for place in sorted(rows):
        shown, own = rows[place], []
        for part, fewest in enumerate((1, FEWEST_ROWS, FEWEST_ROWS, FEWEST_ROWS)):
            votes = {t: pointing(part, place, t) for t in range(counts.num_states)}
            if part == 3:  # what few rows of the action have shown, this one included
                few = {t: len(pointing(2, place, t)) + (t in shown) for t in votes}
                votes = {t: found for t, found in votes.items() if few[t] <= FEWEST_ROWS}
            own.append({t: found for t, found in votes.items() if len(found) >= fewest})
        after = 2 ** int(np.log2(sum(shown.values())))
        pools.append([])
        for pool in own:
            free = {t: found for t, found in pool.items() if t not in shown}
            hidden = {t: sum(hides(*row, after) for row in found) for t, found in free.items()}
            pools[-1].append(mixed(hidden, {t: len(found) for t, found in free.items()}))
        stays = stayed(place) >= FEWEST_ROWS
        pools[-1].append({place[0]: 1.0} if stays and place[0] not in shown else {})
        own = [{t: len(found) for t, found in pool.items()} for pool in own]
        for x in [t for t, n in shown.items() if n == 1 and sum(shown.values()) > 1]:
            free = [{t: n for t, n in pool.items() if t == x or t not in shown} for pool in own]
            chance = [pool.get(x, 0) / max(1, sum(pool.values())) for pool in free]
            pointed = set().union(*free)
            left = counts.num_states - len(pointed) - len(shown) + 1
            again = stays and x == place[0]
            if x not in pointed and not again:
                strays.append(x)
            named.append([*chance, again, 0.0 if x in pointed or again else 1.0 / left])
            open_to.append([*map(bool, free), stays and (again or place[0] not in shown), True])
    return pools, np.array(named, dtype=float), np.array(open_to), strays


def likeliest(named, open_to, prior):
    """The shares that make the singletons most likely, by a general optimiser."""

    def loss(logs):
        share = np.exp(logs)
        chance = (named @ share) / (open_to @ share)
        return (
            -np.log(chance).sum() - prior @ logs + prior.sum() * np.log(share.sum())
            + (logs.sum()) ** 2  # the scale is free
        )  # fmt: skip

    found = np.exp(minimize(loss, np.zeros(len(prior)), tol=1e-12).x)
    return found / found.sum()


def test_entered_by_others_lists_what_other_actions_entered():
    into = {(s, 1, 5): 2 for s in range(FEWEST_ROWS)} | {(s, 1, 6): 2 for s in range(2)}
    counts = log(into | {(4, 0, 0): 3, (3, 0, 0): 2}, 7, 2)
    assert candidates(counts, 4, 0, "entered") == {}
    assert candidates(counts, 4, 0, "entered by others") == {5: 1.0}  # two rows are too few for 6
    assert candidates(counts, 0, 1, "entered by others") == {}
    many = {(s, 0, 5): 2 for s in range(FEWEST_ROWS + 1)}
    assert candidates(log(into | many | {(4, 0, 0): 3}, 7, 2), 4, 0, "entered by others") == {}


def test_pairs_of_actions_and_states_are_bounded(monkeypatch):
    monkeypatch.setattr(destination_pools, "MOST_PAIRS", 2)
    into = {(s, 1, 5): 2 for s in range(FEWEST_ROWS)} | {(s, 1, 6): 2 for s in range(4)}
    counts = log(into | {(4, 0, 0): 3}, 7, 2)
    assert candidates(counts, 4, 0, "entered by others") == {6: 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_candidates_and_shares_by_definition(seed):
    labels = [None, [f"s{3 * i}" for i in range(40)], None][seed]
    counts = random_log(seed, labels=labels)
    pools, named, open_to, strays = by_definition(counts)
    found = learn_destinations(counts)
    for row, own in enumerate(pools):
        for part, pool in enumerate(own):
            at = len(PARTS) * row + part
            listed = slice(found.start[at], found.start[at + 1])
            assert set(found.state[listed].tolist()) == set(pool)
            expected = [pool[t] for t in found.state[listed]]
            np.testing.assert_allclose(found.weight[listed], expected)
    prior = np.append(PRIOR_SHARES[: len(POOLS) + 1], PRIOR_REST)
    share = likeliest(named, open_to, prior)
    mine = np.append(found.shares[: len(POOLS) + 1], found.shares[STRAYS:].sum())
    np.testing.assert_allclose(mine / mine.sum(), share, rtol=1e-3)
    assert mine.sum() == pytest.approx(len(named) + prior.sum())
    unknown = PRIOR_REST + min(len(strays), ONE_STRAY)
    assert found.shares[-1] / mine[-1] == pytest.approx(unknown / (unknown + len(strays)))


def test_shares_by_hand():
    """One singleton that only the same state names, one that nothing names."""
    counts = log({(0, 0, 1): 3, (0, 0, 2): 1, (0, 1, 2): 4, (1, 0, 3): 3, (1, 0, 0): 1}, 4, 2)
    # Row (0, 0) left out 2, which action 1 reached: named by "same state" with certainty. Row
    # (1, 0) left out 0: no pattern, and the row is open to none, so that it says nothing of shares.
    found = learn_destinations(counts).shares
    assert found[0] / (found[0] + found[STRAYS:].sum()) == pytest.approx(1.5 / 1.75)
    assert found[STRAYS] / found[STRAYS:].sum() == pytest.approx(1 / (1 + PRIOR_REST + ONE_STRAY))
    assert candidates(counts, 0, 0, "strays") == {0: 1.0}
    np.testing.assert_allclose(found[1:STRAYS], PRIOR_SHARES[1:])


def test_without_singletons_the_prior_stays():
    found = learn_destinations(log({(0, 0, 1): 1}, 2)).shares
    np.testing.assert_allclose(found, [*PRIOR_SHARES, 0.0, PRIOR_REST])


def test_a_row_may_stay_where_others_of_its_action_stayed():
    stays = {(s, 0, s): 2 for s in range(FEWEST_ROWS)}
    counts = log(stays | {(4, 0, 0): 3, (5, 1, 0): 3}, 6, 2)
    assert candidates(counts, 4, 0, "stays") == {4: 1.0}
    assert candidates(counts, 5, 1, "stays") == {}  # another action
    assert candidates(counts, 0, 0, "stays") == {}  # it has stayed itself
    fewer = {place: n for place, n in stays.items() if place != (0, 0, 0)}
    assert candidates(log(fewer | {(4, 0, 0): 3}, 6), 4, 0, "stays") == {}


def test_usual_ends_have_parts_of_their_own():
    ends = {(s, 0, 6): 2 for s in range(4)} | {(s, 0, 7): 1 for s in range(3)}
    counts = log(ends | {(4, 0, 0): 3, (5, 1, 0): 3}, 8, 2, terminal=(6, 7))
    assert candidates(counts, 4, 0, "end 1") == {6: 1.0}
    assert candidates(counts, 4, 0, "end 2") == {7: 1.0}
    assert candidates(counts, 4, 0, "end 3") == {}
    assert candidates(counts, 3, 0, "end 1") == {}  # it has ended there
    assert candidates(counts, 3, 0, "end 2") == {7: 1.0}
    assert candidates(counts, 5, 1, "end 1") == {}  # another action
    for part in ("entered", "entered by others"):  # each end counts once
        assert not {6, 7} & set(candidates(counts, 4, 0, part))


def test_an_end_is_as_likely_as_it_was_in_rows_that_had_not_shown_it():
    """Most rows have shown the usual end; those that have not are few, and most reach it next."""
    rng = np.random.default_rng(0)
    size, ends = 60, 60
    count = np.zeros((size + 2, 1, size + 2), dtype=np.int64)
    for s in range(size):
        np.add.at(count[s, 0], np.where(rng.random(6) < 0.4, ends, rng.integers(0, size, 6)), 1)
    words = [f"{chr(97 + i % 26)}{i}x" for i in range(size + 2)]
    counts = replace(
        Counts.from_arrays(count, state_labels=words), terminal=np.arange(size + 2) >= size
    )
    posterior = LearnedPosterior(counts)
    end = (posterior.counts.successor == ends) & (posterior.counts.count == 0)
    new = np.where(posterior.counts.count == 0, posterior.mean(), 0.0)
    row = posterior.layout.entry_row[end]
    share = posterior.mean()[end] / np.add.reduceat(new, posterior.row_start[:-1])[row]
    # Six tries that are not the end leave .6 for it among what a row may show next: hardly less
    # than .4, while one in fifty of all new successors is the end.
    assert 0.25 < share.mean() < 0.6


def test_strays_are_what_no_pattern_names():
    entries = {(s, 0, s + 1): 4 for s in range(7)} | {(0, 0, 6): 1, (3, 0, 0): 1}
    counts = log(entries, 8)
    # Both were seen once, and no three rows show them: a row lists those it has not shown.
    assert candidates(counts, 1, 0, "strays") == pytest.approx({0: 0.5, 6: 0.5})
    assert candidates(counts, 0, 0, "strays") == {0: 1.0}
    assert candidates(counts, 3, 0, "strays") == {6: 1.0}


def test_a_successor_that_the_log_knows_from_one_visit_alone_is_no_stray():
    """Without that visit nothing would be known of it: it is evidence of unknown states."""
    entries = {(s, 0, s + 1): 4 for s in range(6)} | {(0, 0, 5): 1, (3, 0, 0): 1, (1, 0, 7): 1}
    often = log({**entries, (7, 0, 0): 2}, 8)
    once = log({**entries, (7, 0, 0): 1}, 8)
    assert set(candidates(often, 2, 0, "strays")) == {0, 5, 7}
    assert set(candidates(once, 2, 0, "strays")) == {0, 5}
    shares = [learn_destinations(counts).shares for counts in (often, once)]
    rest = [share[-1] / share[-2:].sum() for share in shares]
    assert rest[0] == pytest.approx(1.25 / 4.25)
    assert rest[1] > 0.5


def test_candidates_are_never_what_the_row_has_shown(monkeypatch):
    for cap in (64, 2):
        monkeypatch.setattr(destinations, "MOST_EACH", cap)
        for seed in range(3):
            counts = random_log(seed)
            found = learn_destinations(counts)
            row = np.repeat(np.arange(len(found.start) - 1), np.diff(found.start)) // len(PARTS)
            shown = set(zip(counts.entry_row.tolist(), counts.successor.tolist(), strict=True))
            assert not shown & set(zip(row.tolist(), found.state.tolist(), strict=True))
            whole = np.add.reduceat(found.weight, found.start[:-1][np.diff(found.start) > 0])
            np.testing.assert_allclose(whole, 1.0)


def sample(rows, most, numbers, own=()):
    """Return the shares that a priority sample of a pool of states gives each of them."""
    rows, numbers = np.asarray(rows, dtype=np.float64), np.asarray(numbers)
    priority = rows / numbers
    mark, size = np.full(len(rows), -1), len(rows)
    mark[list(own)] = 7
    state, weight = np.empty(size, np.int64), np.empty(size)
    listed = kernels.sample_candidates(
        np.arange(size), np.concatenate(([0.0], np.cumsum(rows))) + 4.0, np.argsort(-priority),
        priority, 0, size, -1, np.full(1, -1), mark, 7, most, rows[mark < 0].sum(), state, weight,
    )  # fmt: skip
    assert listed == most
    found = np.zeros(size)
    found[state[:listed]] = weight[:listed]
    return found


def test_priority_samples_keep_weights_on_average():
    rows, own = np.array([1, 2, 3, 4, 5, 6, 7, 1, 2, 3], dtype=np.float64), (2, 5)
    rng = np.random.default_rng(0)
    found = np.array([sample(rows, 5, 1 - rng.random(10), own) for _ in range(6000)])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    expected = np.where(np.isin(np.arange(10), own), 0.0, rows)
    np.testing.assert_allclose(found.mean(axis=0), expected / expected.sum(), atol=0.02)


def test_what_many_rows_show_is_in_every_sample():
    """With the share it deserves, whatever the numbers of the others."""
    rng = np.random.default_rng(1)
    rows = np.concatenate(([300.0, 200.0], np.ones(500)))
    found = np.array([sample(rows, 12, 1 - rng.random(502)) for _ in range(200)])
    np.testing.assert_allclose(found[:, 0], 0.3)
    np.testing.assert_allclose(found[:, 1], 0.2)


def alike_rows(states=400):
    """A log whose rows show one state of their own, and one of forty that many rows show."""
    rng = np.random.default_rng(2)
    entries = {(s, a, int(t)): 1 for s in range(states) for a in range(2)
               for t in (rng.integers(states), rng.integers(40))}  # fmt: skip
    labels = [f"{chr(97 + i % 26)}{i}x" for i in range(states)]
    return log(entries, states, 2, labels=labels)


def test_alike_actions_list_the_same_candidates(monkeypatch):
    """No action may look better than another by the draw: a search would find it."""
    monkeypatch.setattr(destinations, "CANDIDATES", 1)
    counts = alike_rows()
    lists = [[frozenset(candidates(counts, s, a, "entered")) for a in (0, 1)] for s in range(60)]
    assert all(len(one) == destinations.HIDDEN_EACH for pair in lists for one in pair)
    same = np.mean([len(one & other) for one, other in lists])
    apart = np.mean([len(a[0] & b[0]) for a, b in pairwise(lists)])
    assert same > 10
    assert apart < 8


def test_what_some_states_leave_out_others_list(monkeypatch):
    """Were the same candidates left out everywhere, the model as a whole would be wrong."""
    monkeypatch.setattr(destinations, "CANDIDATES", 1)
    monkeypatch.setattr(destinations, "HIDDEN_EACH", 8)
    counts = alike_rows()
    found = learn_destinations(counts)
    monkeypatch.setattr(destinations, "CANDIDATES", 10**6)
    monkeypatch.setattr(destinations, "MOST_EACH", 1000)
    exact = destinations._learn(counts)
    part, mean = POOLS.index("entered"), []
    for one in (found, exact):
        of_part = np.repeat(np.arange(len(one.start) - 1), np.diff(one.start)) % len(PARTS) == part
        mean.append(np.bincount(one.state[of_part], one.weight[of_part], 400) / counts.num_rows)
    popular = mean[1] > 0.01
    assert popular.sum() > 30
    np.testing.assert_allclose(mean[0][popular], mean[1][popular], rtol=0.6)
    assert abs(mean[0][popular] / mean[1][popular] - 1).mean() < 0.2


def test_numbers_of_candidates_are_uniform():
    numbers = destination_pools.number_of(np.arange(-600, 600), np.arange(1200) % 7)
    assert numbers.min() > 0.0
    assert numbers.max() <= 1.0
    assert abs(numbers.mean() - 0.5) < 4 / np.sqrt(12 * len(numbers))
    share = np.bincount((numbers * 9.999).astype(int), minlength=10) / len(numbers)
    assert np.all(np.abs(share - 0.1) < 4 * np.sqrt(0.09 / len(numbers)))
    for what in range(20):
        beside = np.sort(destination_pools.number_of(np.full(8, what), np.arange(16, 24)))
        assert np.diff(beside).max() < 2.7 / 8


@pytest.mark.parametrize("groups", [1, 7, 2 * destination_pools.FEW_GROUPS])
@pytest.mark.parametrize("levels", [3, 10**9])
def test_priorities_are_ranked_within_groups_and_ties_keep_their_order(groups, levels):
    rng = np.random.default_rng(groups)
    group = np.sort(rng.integers(0, groups, 4000))
    start = np.searchsorted(group, np.arange(groups + 1))
    rows = rng.integers(1, levels, 4000).astype(float)
    found = destination_pools._falling(rows, start, group)
    wanted = sorted(range(4000), key=lambda place: (group[place], -rows[place], place))
    assert found.tolist() == wanted


def test_candidates_depend_on_the_log_alone(monkeypatch):
    """Declaring the support adds and removes rows; the others keep their candidates."""
    monkeypatch.setattr(destinations, "MOST_EACH", 2)
    counts = random_log(4)
    placed = counts.on_support("learned", unvisited="prior")
    before, after = learn_destinations(counts), learn_destinations(placed)
    assert placed.num_rows > counts.num_rows
    key = placed.row_state * placed.num_actions + placed.row_action
    rows = np.searchsorted(key, counts.row_state * counts.num_actions + counts.row_action)
    for old, new in enumerate(rows):
        for part in range(len(PARTS)):
            a, b = len(PARTS) * old + part, len(PARTS) * new + part
            mine, other = (
                slice(before.start[a], before.start[a + 1]),
                slice(after.start[b], after.start[b + 1]),
            )
            np.testing.assert_array_equal(before.state[mine], after.state[other])
            np.testing.assert_array_equal(before.weight[mine], after.weight[other])
    np.testing.assert_array_equal(before.shares, after.shares)


def test_order_of_the_log_does_not_matter():
    rng = np.random.default_rng(0)
    table = {
        "state": rng.integers(0, 9, 300), "action": rng.integers(0, 2, 300),
        "reward": np.zeros(300), "next_state": rng.integers(0, 9, 300),
    }  # fmt: skip
    order = rng.permutation(300)
    one = learn_destinations(read_transitions(table))
    other = learn_destinations(read_transitions({k: v[order] for k, v in table.items()}))
    for name in ("start", "state", "weight", "shares"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_on_entries_has_the_rest_as_its_last_part():
    counts = log({(0, 0, 1): 4, (0, 1, 2): 2, (1, 0, 1): 1}, 4, 2).on_support("learned")
    row = int(np.flatnonzero((counts.row_state == 0) & (counts.row_action == 0))[0])
    open_rows = counts.row_state < 2
    found = on_entries(learn_destinations(counts), counts, open_rows)
    first = (len(PARTS) + 1) * row
    parts = [
        found.state[found.start[first + p] : found.start[first + p + 1]].tolist()
        for p in range(len(PARTS) + 1)
    ]
    assert parts == [[2], *[[]] * (len(PARTS) - 1), [counts.unseen]]
    support = np.ones((4, 2, 4))
    declared = Counts.from_arrays([[[4, 0, 0, 0], [0, 1, 0, 0]]] * 4, support=support)
    found = on_entries(learn_destinations(declared), declared, np.zeros(8, dtype=np.bool_))
    rest = slice(found.start[len(PARTS)], found.start[len(PARTS) + 1])
    assert found.state[rest].tolist() == [1, 2, 3]
    np.testing.assert_allclose(found.weight[rest], 1 / 3)


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ((3, 1, 2), [3, 1, 2]),
        (("a", "b1", "b2"), None),
        (("x1", "x2", "y1", "y2", "y3"), [np.nan, np.nan, 1, 2, 3]),
        (((0, "calm"), (1, "calm"), (2, "calm")), None),
        (("-1", "0", "1"), [-1, 0, 1]),
        (("cold", "warm", "hot"), None),
    ],
)
def test_numbers_of_labels(labels, numbers):
    found = state_numbers(labels, len(labels))
    assert (found is None) == (numbers is None)
    if numbers is not None:
        np.testing.assert_array_equal(found, numbers)


def test_many_unlike_labels_are_read_at_once():
    labels = tuple(f"{number / 7!r}" for number in range(30_000))
    start = time.process_time()  # on a busy machine a second soon passes
    state_numbers(labels, len(labels))
    assert time.process_time() - start < 1.0


def test_numbers_far_apart_are_names():
    labels = [f"patient {number * 10**8 // 7}" for number in range(8)]
    counts = log({(s, 0, s + 1): 1 for s in range(5)}, 8, labels=labels)
    assert candidates(counts, 4, 0, "displacement") == {}


def observed(domain, visits):
    """Return what a log of so many tries a row shows of a domain."""
    counts = domain.simulate(visits, np.random.default_rng(1))
    kept = counts.count > 0
    rows = pack(
        counts.entry_state[kept], counts.entry_action[kept], counts.successor[kept],
        counts.num_states, counts.num_actions,
    )  # fmt: skip
    return Counts(**rows._asdict(), count=counts.count[kept], num_actions=counts.num_actions)


def test_a_large_log_is_quick_and_no_model_doubles():
    small = observed(garnet(20, 2, 3, discount=0.9, rng=np.random.default_rng(0)), 5)
    learn_destinations(small)  # compile
    counts = observed(garnet(3000, 5, 8, discount=0.9, rng=np.random.default_rng(0)), 20)
    start = time.perf_counter()
    learn_destinations(counts)
    assert time.perf_counter() - start < 1.5
    posterior = LearnedPosterior(counts)
    assert posterior.num_entries <= 2 * counts.num_entries


@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize("most", [20_000, 300, 10])
def test_whole_arrays_give_the_bits_of_the_kernels(step, most, monkeypatch):
    """Where there is no numba: unnumbered, numbered and gappy labels, all candidates and some."""
    labels = None if step == 1 else [f"s{step * i}" if step else f"x{i}y" for i in range(40)]
    counts = random_log(most, labels=labels)
    monkeypatch.setattr(destinations, "CANDIDATES", most)
    monkeypatch.setattr(destination_arrays, "MOST_EXPANDED", 500)  # several blocks
    placed = counts.on_support("learned")
    found = []
    for module, mixture in ((kernels, mixture_kernels), (destination_arrays, destination_arrays)):
        monkeypatch.setattr(destinations, "kernels", module)
        monkeypatch.setattr(destinations, "mixture", mixture)
        found.append([destinations._learn(c) for c in (counts, placed)])
    for one, other in zip(*found, strict=True):
        for name in ("start", "state", "weight", "shares"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("seed", range(8))
def test_flags_count_what_lists_count(seed):
    """Pools as flags, numbers with gaps, states without a number, rows of such states."""
    rng = np.random.default_rng(seed)
    states, numbers = 30, 30 if seed % 2 else 45
    state_of = np.full(numbers, -1)
    numbered = np.sort(rng.choice(states, 25, replace=False))
    state_of[np.sort(rng.choice(numbers, 25, replace=False))] = numbered
    number = np.full(states, -1)
    number[state_of[state_of >= 0]] = np.flatnonzero(state_of >= 0)
    steps = np.sort(rng.choice(np.arange(1 - numbers, numbers), 20, replace=False))
    entered = np.sort(rng.choice(states, 12, replace=False))
    by_step, by_number = np.empty(2 * numbers, np.uint8), np.empty(numbers, np.uint8)
    unnumbered = kernels.flag_pools(steps, entered, number, by_step, by_number)
    has_state = (state_of >= 0).astype(np.uint8)
    one, other = np.full((2, states), -1)
    for state in range(states):
        shown, near = (np.sort(rng.choice(states, 5, replace=False)) for _ in range(2))
        origin = number[state]
        moved, ahead = steps[:0], np.zeros(numbers, np.uint8)
        if origin >= 0:
            ahead = by_step[numbers - origin : 2 * numbers - origin]
            inside = (steps + origin >= 0) & (steps + origin < numbers)
            moved = np.array([k for k in steps[inside] if state_of[origin + k] >= 0], np.int64)
        listed = kernels.pointed_one_by_one(
            shown, near, moved, entered, state_of, origin, one, state
        )
        expected = {*shown, *near, *entered, *state_of[origin + moved]}
        assert listed == len(expected)
        flagged = kernels.pointed_by_flags(
            shown, near, entered, number, ahead, by_number, has_state, other, state
        )
        assert unnumbered + flagged == listed


@pytest.mark.parametrize("seed", range(4))
def test_candidates_carried_over_are_those_learned_anew(seed):
    log = random_log(seed)
    count = np.zeros((40, 3, 40), dtype=np.int64)
    count[log.entry_state, log.entry_action, log.successor] = log.count
    count[seed] = 0  # a state that was never left
    counts = Counts.from_arrays(count)
    posterior = LearnedPosterior(counts)
    mine = posterior.__dict__["destinations"]
    placed = posterior.counts
    anew = on_entries(learn_destinations(placed), placed, posterior.open_rows)
    uncertain = np.repeat(np.diff(placed.row_start) > 1, len(PARTS) + 1)
    np.testing.assert_array_equal(np.diff(mine.start)[uncertain], np.diff(anew.start)[uncertain])
    for name in ("state", "weight"):
        one, other = (
            getattr(found, name)[np.repeat(uncertain, np.diff(found.start))]
            for found in (mine, anew)
        )
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(mine.shares, anew.shares)


def test_rows_of_very_many_tries_keep_their_candidates():
    """What ten million tries did not show has no chance that a number could hold; weights stay."""
    entries = {(s, 0, 5): 1 for s in range(3)} | {(s, 0, 6): 1 for s in range(4)}
    counts = log(entries | {(4, 0, 0): 10_000_000}, 7)
    assert candidates(counts, 4, 0, "entered") == pytest.approx({5: 3 / 7, 6: 4 / 7})
