"""The rule of a run, for a terminal."""

from surefoot.pipeline.runs import Run
from surefoot.report.rule import habits
from surefoot.report.rule_text import rule_text


def rule_lines(run: Run) -> list[str]:
    """Return the rule of a run as lines, short enough to read at a glance."""
    model, lines = run.model, run.policy
    known = habits(model.mdp, model.placed, lines, by_step=model.settings.by_step)
    told = rule_text(lines, known, model.settings.columns.state, str(run.folder / "policy.csv"))
    if run.certificate.withheld:
        return ["Found, but not certified.", *told]
    return told
