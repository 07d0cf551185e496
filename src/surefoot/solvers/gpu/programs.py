"""Programs for a device, compiled once for each shape of their arguments: ahead if there is time.

``jax.jit`` compiles when it is called, with all arguments at hand. Compiling takes seconds in which
cores may learn or lay out what the arguments will be: only their shapes must be known.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any

from surefoot.solvers.gpu.device import doubles

OPTIONS: dict[str, Any] = {"xla_gpu_autotune_level": 0}
"""What XLA is told: it times variants of products of matrices, which our programs do not have."""

_LOWERING = Lock()
"""Writing a program is work for Python, one thread at a time: who comes first is done first."""


class Program:
    """A function for devices; the first ``fixed`` arguments are part of the program.

    Each call begins with the device, as JAX knows it.

    Attributes
    ----------
    function
        What is compiled.
    fixed
        How many arguments, from the first on, are hashable values and no arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot.solvers.gpu.device import host_device
    >>> program, here = Program(lambda power, x: x**power, fixed=1), host_device().handle
    >>> program.prepare(here, 2, np.zeros(3)).shape
    (3,)
    >>> np.asarray(program(here, 2, np.arange(3.0))).tolist()
    [0.0, 1.0, 4.0]
    """

    def __init__(self, function: Callable[..., Any], fixed: int = 0) -> None:
        self.function, self.fixed = function, fixed
        self._made: dict[Hashable, Future[Any]] = {}
        self._lock = Lock()

    def __call__(self, device: Any, *arguments: Any) -> Any:
        """Run the program; who comes while it is being compiled waits for that."""
        run = self._compiled(device, arguments)
        with doubles():
            return run(*arguments[self.fixed :])

    def prepare(self, device: Any, *arguments: Any) -> Any:
        """Compile for arguments of these shapes, and return the shapes of what will come out."""
        return self._compiled(device, arguments).out_info

    def _compiled(self, device: Any, arguments: tuple[Any, ...]) -> Any:
        import jax

        leaves, tree = jax.tree.flatten(arguments[self.fixed :])
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        key = (device, arguments[: self.fixed], tree, shapes)
        with self._lock:
            mine = key not in self._made
            found = self._made.setdefault(key, Future())
        if mine:
            try:
                found.set_result(self._compile(device, arguments))
            except BaseException as problem:
                self._made.pop(key)  # another try may have more memory
                found.set_exception(problem)
        return found.result()

    def _compile(self, device: Any, arguments: tuple[Any, ...]) -> Any:
        import jax

        there = jax.sharding.SingleDeviceSharding(device)

        def shape(one: Any) -> Any:
            return jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=there)  # type: ignore[no-untyped-call]

        with doubles():
            shapes = jax.tree.map(shape, arguments[self.fixed :])
            jitted = jax.jit(self.function, static_argnums=tuple(range(self.fixed)))
            with _LOWERING:
                lowered = jitted.lower(*arguments[: self.fixed], *shapes)
            return lowered.compile(None if device.platform == "cpu" else OPTIONS)
