"""How much doubt can a policy bear? RiverSwim under growing L1 budgets.

Run it with ``uv run python examples/how_much_doubt.py``.
"""

from math import floor

from surefoot import AmbiguitySet, evaluate, riverswim, solve


def main() -> None:
    mdp = riverswim().mdp
    nominal = solve(mdp)
    print("budget   nominal policy   robust policy   actions of the robust policy")
    for budget in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=budget)
        exposed = evaluate(mdp, nominal.policy, ambiguity)
        robust = solve(mdp, ambiguity)
        # The policy chosen for the worst case does at least as well there as any other.
        assert robust.return_upper >= exposed.return_lower
        actions = " ".join(mdp.action_labels[action] for action in robust.policy)
        print(
            f"{budget:6g}   {floor(exposed.return_lower):14d}   {floor(robust.return_lower):13d}   "
            f"{actions}"
        )


if __name__ == "__main__":
    main()
