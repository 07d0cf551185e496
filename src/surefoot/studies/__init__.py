"""Studies that back the defaults and the promises."""
