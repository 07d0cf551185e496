"""Prefetching: requesting memory some time before it is read."""

from surefoot._compile import COMPILES

if COMPILES:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
else:

    def intrinsic(source):
        """Return the function unchanged: without Numba no kernel calls it."""
        return source


@intrinsic
def prefetch(_typing, array, index):
    """Ask the processor to load ``array[index]`` into its caches, without waiting for it."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0])
        where = cgutils.get_item_pointer(
            context, builder, kind, data, [arguments[1]], wraparound=False, boundscheck=False
        )
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, takes, "llvm.prefetch.p0")
        read, keep, of_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(where, byte), read, keep, of_data])
        return context.get_dummy_value()

    return types.none(array, index), generate
