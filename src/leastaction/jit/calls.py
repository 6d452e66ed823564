"""Calls through C addresses from compiled code: control, joint laws and forces of the user."""

# mypy: ignore-errors
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from leastaction.jit.decorators import PART_OPTIONS
from leastaction.jit.lanes import PackType, lane, pack_of

_D = ir.DoubleType()
_P = _D.as_pointer()


def _function_at(builder, address, result, arguments):
    return builder.inttoptr(address, ir.FunctionType(result, arguments).as_pointer())


def _data(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, array).data


@intrinsic
def call_control(typingctx, address, t, q, v, out):
    """``void (t, q, v, out)`` at an address, on contiguous vectors."""

    def code(context, builder, sig, args):
        function = _function_at(builder, args[0], ir.VoidType(), [_D, _P, _P, _P])
        data = [_data(context, builder, sig.args[k], args[k]) for k in (2, 3, 4)]
        builder.call(function, [args[1], *data])
        return context.get_dummy_value()

    return types.void(types.int64, types.float64, q, v, out), code


@intrinsic
def call_force(typingctx, address, t, given, out):
    """``void (t, in, out)`` at an address, on contiguous vectors."""

    def code(context, builder, sig, args):
        function = _function_at(builder, args[0], ir.VoidType(), [_D, _P, _P])
        data = [_data(context, builder, sig.args[k], args[k]) for k in (2, 3)]
        builder.call(function, [args[1], *data])
        return context.get_dummy_value()

    return types.void(types.int64, types.float64, given, out), code


@intrinsic
def _call_double(typingctx, address, x):
    def code(context, builder, sig, args):
        return builder.call(_function_at(builder, args[0], _D, [_D]), [args[1]])

    return types.float64(types.int64, types.float64), code


def call_law(address, x):
    """``double (x)`` at an address, lane by lane."""
    raise NotImplementedError("only compiled code calls through an address")


@overload(call_law, jit_options=PART_OPTIONS, strict=False)
def _call_law(address, x):
    if not isinstance(x, PackType):
        return lambda address, x: _call_double(address, x)

    def lanes(address, x):
        return pack_of(
            _call_double(address, lane(x, 0)),
            _call_double(address, lane(x, 1)),
            _call_double(address, lane(x, 2)),
            _call_double(address, lane(x, 3)),
        )

    return lanes
