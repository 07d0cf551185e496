"""Records of patients under treatment, made up: blood pressure, age, which drug, how they felt.

Prints a CSV: python examples/patients.py > patients.csv
"""

import csv
import sys

import numpy as np

PATIENTS, VISITS = 300, 10
EFFECT = {"none": 4.0, "mild": -3.0, "strong": -12.0}
"""What a month on the drug adds to the pressure, on average."""
BURDEN = {"none": 0.0, "mild": 0.5, "strong": 2.0}
"""What taking it costs the patient."""


def wellbeing(pressure: float, age: float, drug: str) -> float:
    """Ten is a good month; high pressure takes away more, the older a patient is."""
    return 10.0 - BURDEN[drug] - 0.12 * max(pressure - 130.0, 0.0) * (1.5 if age >= 65 else 1.0)


def main() -> None:
    rng = np.random.default_rng(7)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("patient", "visit", "age", "pressure", "drug", "wellbeing"))
    for patient in range(1, PATIENTS + 1):
        age, pressure = rng.uniform(40, 85), rng.uniform(130, 170)
        for visit in range(1, VISITS + 1):
            likely = [0.5, 0.3, 0.2] if pressure < 145 else [0.2, 0.4, 0.4]
            drug = str(rng.choice(list(EFFECT), p=likely))
            felt = wellbeing(pressure, age, drug)
            writer.writerow(
                (f"P{patient:03d}", visit, f"{age:.1f}", f"{pressure:.1f}", drug, f"{felt:.2f}")
            )
            pressure = float(np.clip(pressure + EFFECT[drug] + rng.normal(0, 12), 118, 172))


if __name__ == "__main__":
    main()
