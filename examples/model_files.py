"""Write a labelled model to a CSV file that a spreadsheet can open, and solve it from there.

Run it with ``uv run python examples/model_files.py``.
"""

import tempfile
from pathlib import Path

from surefoot import machine_replacement, read_mdp, solve, write_mdp


def main() -> None:
    truth = machine_replacement().mdp
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.csv"
        write_mdp(truth, path)
        print(*path.read_text().splitlines()[:3], sep="\n")
        mdp = read_mdp(path, discount=truth.discount)
    solution = solve(mdp)
    for state, action in enumerate(solution.policy):
        print(f"{mdp.state_labels[state]:>14}: {mdp.action_labels[action]}")


if __name__ == "__main__":
    main()
