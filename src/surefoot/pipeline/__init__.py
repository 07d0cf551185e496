"""From a log and a few settings to a finished run folder."""
