"""``surefoot doctor``: what this machine offers."""

from typing import TYPE_CHECKING

import typer

from surefoot._version import __version__
from surefoot.commands.command import command, examples
from surefoot.commands.console import Output

if TYPE_CHECKING:
    from surefoot.pipeline.machine import Machine


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "doctor", epilog=examples("surefoot doctor", "surefoot doctor --json"))(doctor)


def doctor(output: Output) -> None:
    """Show cores, memory, GPU, extras and kernel cache, and how large a model they can handle."""
    from surefoot.pipeline.machine import Machine, system_text

    found = Machine.here()
    rows = [
        ("surefoot", f"{__version__}, {system_text()}"),
        ("cores", _cores(found)),
        ("memory", f"{_bytes(found.memory)}, {_bytes(found.free_memory)} free"),
        ("GPU", _gpu(found)),
        ("kernels", _kernels(found)),
        *(("extra", _extra(name, missing)) for name, missing in found.extras.items()),
        ("a whole run", f"up to about {_entries(found.run_entries)}"),
        ("a robust solve", f"up to about {_entries(found.solve_entries)}"),
    ]  # fmt: skip
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}}  {text}" for name, text in rows]
    output.result(_facts(found), "\n".join(lines), "", ENTRIES)


ENTRIES = (
    "An entry is a successor of a state and an action: 1,000 states with 5 actions and 10 "
    "successors each make 50,000. The figures are for memory that is free now."
)


def _facts(found: "Machine") -> dict[str, object]:
    return {
        "surefoot": __version__,
        "cores": found.cores,
        "all_cores": found.all_cores,
        "memory": found.memory,
        "free_memory": found.free_memory,
        "gpus": list(found.gpus),
        "extras": {name: not missing for name, missing in found.extras.items()},
        "kernel_cache": {
            "folder": str(found.cache), "kernels": found.kernels, "bytes": found.cache_bytes
        },
        "run_entries": found.run_entries,
        "solve_entries": found.solve_entries,
    }  # fmt: skip


def _cores(found: "Machine") -> str:
    if found.cores == found.all_cores:
        return str(found.cores)
    return f"{found.cores} of {found.all_cores} (this process may not use the others)"


def _gpu(found: "Machine") -> str:
    if not found.gpus:
        return "none found (none is needed)"
    from surefoot.solvers.gpu.device import find_gpu

    try:
        used = find_gpu()
    except TimeoutError as problem:
        return f"{'; '.join(found.gpus)} ({problem})"
    if used is None:
        words = "not seen by JAX: pip install 'surefoot[gpu]'"
    else:
        words = f"{_bytes(used.memory)} of it used for large models and with --device gpu"
    return f"{'; '.join(found.gpus)} ({words})"


def _kernels(found: "Machine") -> str:
    if found.kernels == 0:
        return f"none compiled yet in {found.cache}: the first run takes half a minute longer"
    return f"{found.kernels} compiled, {_bytes(found.cache_bytes)} in {found.cache}"


def _extra(name: str, missing: tuple[str, ...]) -> str:
    if not missing:
        return f"{name}: installed"
    return f"{name}: lacks {', '.join(missing)}; pip install 'surefoot[{name}]'"


def _entries(number: int | None) -> str:
    if number is None:
        return "as many entries as fit into memory (the system does not say how much there is)"
    for size, word in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= size:
            return f"{number / size:,.2g} {word} entries" if number < 100 * size else (
                f"{number // size:,} {word} entries"
            )  # fmt: skip
    return f"{number} entries"


def _bytes(size: int | None) -> str:
    from surefoot.pipeline.machine import size_text

    return "unknown" if size is None else size_text(size)
