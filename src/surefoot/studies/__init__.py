"""Studies that support the defaults and the promises."""
