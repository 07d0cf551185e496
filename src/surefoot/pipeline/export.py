"""The policy of a run for other programs; the ending of the file name decides the format."""

from pathlib import Path

from surefoot._atomic import replacing
from surefoot.pipeline.policy_sheet import write_sheet
from surefoot.pipeline.policy_sql import policy_sql
from surefoot.pipeline.runs import Run


def export_policy(run: Run, path: str | Path) -> None:
    """Write the policy as SQL (``.sql``) or as a spreadsheet (``.xlsx``).

    Examples
    --------
    >>> export_policy(None, "policy.txt")
    Traceback (most recent call last):
    ...
    ValueError: policy.txt: the name must end in .sql or .xlsx (policy.csv is in the run folder).
    """
    place = Path(path)
    ending = place.suffix.lower()
    if ending == ".sql":
        with replacing(place, "w", encoding="utf-8") as file:
            file.write(run_sql(run))
    elif ending == ".xlsx":
        write_sheet(run, place)
    else:
        raise ValueError(
            f"{path}: the name must end in .sql or .xlsx (policy.csv is in the run folder)."
        )


def run_sql(run: Run) -> str:
    """Return the policy of a run as SQL, with its promise as a comment."""
    remark = f"{run.certificate.sentence}\nStates that the log never shows give NULL."
    return policy_sql(run.policy, run.settings.columns, run.model.bins, remark)
