"""Four environments at once: ``<4 x double>`` as a scalar type of Numba, and loads and stores that choose it.

A sweep is written once. Handed arrays of two dimensions it works on doubles; handed arrays with a further last
axis of four entries it works on packs, one lane per environment. Model constants stay plain numbers and are
broadcast. Branches on joint kinds are the same for all lanes; branches on values must be ``pick``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from leastaction.jit.decorators import MEMORY_OPTIONS, PART_OPTIONS, kernel
from leastaction.spatial._source import scalar

LANES = 4
DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, LANES)
I32 = ir.IntType(32)
FLAGS = ("contract", "nsz", "arcp")


class PackType(types.Type):  # type: ignore[misc]
    """Numba's type of four doubles in one register."""

    def __init__(self) -> None:
        super().__init__(name="leastaction.Pack4")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """Plain numbers broadcast to all lanes."""
        return Conversion.promote if isinstance(other, types.Float | types.Integer) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """A pack and a number meet as a pack."""
        return self if isinstance(other, types.Float | types.Integer) else None


PACK = PackType()


@register_model(PackType)
class _PackModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, VECTOR)


def _splat(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


@lower_cast(types.Float, PackType)
@lower_cast(types.Integer, PackType)
def _number_to_pack(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return _splat(builder, context.cast(builder, value, fromty, types.float64))


# --- arithmetic -------------------------------------------------------------------------------------------------
class _Binary(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        numeric = all(isinstance(a, PackType | types.Float | types.Integer) for a in args)
        if len(args) == 2 and numeric and any(isinstance(a, PackType) for a in args):
            return signature(PACK, PACK, PACK)
        return None


def _define_binary(name: str, *operators: Any) -> None:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, name)(*args, flags=FLAGS)

    for op in operators:
        infer_global(op)(type(f"_Pack_{op.__name__}", (_Binary,), {}))
        lower_builtin(op, PackType, PackType)(lower)


_define_binary("fadd", operator.add, operator.iadd)
_define_binary("fsub", operator.sub, operator.isub)
_define_binary("fmul", operator.mul, operator.imul)
_define_binary("fdiv", operator.truediv, operator.itruediv)


@infer_global(operator.neg)
class _Negate(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(PACK, PACK) if isinstance(args[0], PackType) else None


@lower_builtin(operator.neg, PackType)
def _negate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0], flags=FLAGS)


# --- functions of one pack, lane by lane ------------------------------------------------------------------------
def _unary(name: str) -> Any:
    @intrinsic
    def function(typingctx: Any, x: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            t = args[0].type
            suffix = f"v{LANES}f64" if isinstance(t, ir.VectorType) else "f64"
            called = cgutils.get_or_insert_function(builder.module, ir.FunctionType(t, [t]), f"llvm.{name}.{suffix}")
            return builder.call(called, args)

        return signature(x, x), code

    return function


_pack_sqrt, floor, _fabs = _unary("sqrt"), _unary("floor"), _unary("fabs")


@intrinsic
def _select_above(typingctx: Any, x: Any, threshold: Any, above: Any, below: Any) -> Any:
    wide = PACK if any(isinstance(t, PackType) for t in (x, threshold, above, below)) else types.float64

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        condition = builder.fcmp_ordered(">", args[0], args[1])
        return builder.select(condition, args[2], args[3])

    return signature(wide, wide, wide, wide, wide), code


@intrinsic
def lane(typingctx: Any, pack: Any, k: Any) -> Any:
    """One lane of a pack as a double."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], I32))

    return signature(types.float64, pack, types.int64), code


@intrinsic
def pack_of(typingctx: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """A pack from four doubles."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        v = ir.Constant(VECTOR, ir.Undefined)
        for k in range(LANES):
            v = builder.insert_element(v, args[k], ir.Constant(I32, k))
        return v

    return signature(PACK, *[types.float64] * LANES), code


@overload(scalar.pick, jit_options=PART_OPTIONS, strict=False)
def _pick(x: Any, threshold: Any, above: Any, below: Any) -> Any:
    return lambda x, threshold, above, below: _select_above(x, threshold, above, below)


@overload(scalar.sqrt, jit_options=PART_OPTIONS, strict=False)
def _sqrt(x: Any) -> Any:
    return lambda x: _pack_sqrt(x)


@overload(scalar.absolute, jit_options=PART_OPTIONS, strict=False)
def _absolute(x: Any) -> Any:
    return lambda x: _fabs(x)


@overload(scalar.arctan2, jit_options=PART_OPTIONS, strict=False)
def _arctan2(y: Any, x: Any) -> Any:
    if not isinstance(y, PackType) and not isinstance(x, PackType):
        return lambda y, x: math.atan2(y, x)

    def lanes(y, x):  # type: ignore[no-untyped-def]
        return pack_of(
            math.atan2(lane(y, 0), lane(x, 0)),
            math.atan2(lane(y, 1), lane(x, 1)),
            math.atan2(lane(y, 2), lane(x, 2)),
            math.atan2(lane(y, 3), lane(x, 3)),
        )

    return lanes


# --- sine and cosine: three-part reduction by pi/2, then the minimax polynomials of fdlibm -------------------------
_LARGE = 1.0e5  # beyond this the reduction would lose digits: the C library is asked instead


@kernel
def _sincos_reduced(x):  # type: ignore[no-untyped-def]
    # quadrant k and remainder y in [-pi/4, pi/4]
    k = floor(x * 0.63661977236758134308 + 0.5)
    y = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21
    z = y * y
    s = y + y * z * (
        -1.66666666666666324348e-01
        + z
        * (
            8.33333333332248946124e-03
            + z
            * (
                -1.98412698298579493134e-04
                + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10))
            )
        )
    )
    c = (
        1.0
        - z * 0.5
        + z
        * z
        * (
            4.16666666666666019037e-02
            + z
            * (
                -1.38888888888741095749e-03
                + z
                * (
                    2.48015872894767294178e-05
                    + z
                    * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))
                )
            )
        )
    )
    # swap and negate by quadrant
    r = k - 4.0 * floor(k * 0.25)
    odd = r - 2.0 * floor(r * 0.5)
    sine = scalar.pick(odd, 0.5, c, s)
    cosine = scalar.pick(odd, 0.5, s, c)
    return scalar.pick(r, 1.5, -sine, sine), scalar.pick(scalar.absolute(r - 1.5), 0.75, cosine, -cosine)


@overload(scalar.sincos, jit_options=PART_OPTIONS, strict=False)
def _sincos(x: Any) -> Any:
    if not isinstance(x, PackType):

        def one(x):  # type: ignore[no-untyped-def]
            if abs(x) > _LARGE:
                return math.sin(x), math.cos(x)
            return _sincos_reduced(x)

        return one

    def lanes(x):  # type: ignore[no-untyped-def]
        a, b, c, d = lane(x, 0), lane(x, 1), lane(x, 2), lane(x, 3)
        if max(max(abs(a), abs(b)), max(abs(c), abs(d))) > _LARGE:
            return (
                pack_of(math.sin(a), math.sin(b), math.sin(c), math.sin(d)),
                pack_of(math.cos(a), math.cos(b), math.cos(c), math.cos(d)),
            )
        return _sincos_reduced(x)

    return lanes


# --- loads, stores, allocation: the last axis of a lane array is the lane -----------------------------------------
def _lane_pointer(context: Any, builder: Any, array_type: Any, array: Any, indices: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, view.shape, array_type.ndim)
    offset = indices[0]
    for k in range(1, len(indices)):
        offset = builder.add(builder.mul(offset, shape[k]), indices[k])
    offset = builder.mul(offset, ir.Constant(offset.type, LANES))
    return builder.bitcast(builder.gep(view.data, [offset]), VECTOR.as_pointer())


@intrinsic
def _load_pack(typingctx: Any, array: Any, indices: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where = cgutils.unpack_tuple(builder, args[1], sig.args[1].count)
        return builder.load(_lane_pointer(context, builder, sig.args[0], args[0], where), align=8)

    return signature(PACK, array, types.UniTuple(types.intp, indices.count)), code


@intrinsic
def _store_pack(typingctx: Any, array: Any, indices: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where = cgutils.unpack_tuple(builder, args[1], sig.args[1].count)
        builder.store(args[2], _lane_pointer(context, builder, sig.args[0], args[0], where), align=8)
        return context.get_dummy_value()

    return signature(types.void, array, types.UniTuple(types.intp, indices.count), PACK), code


# --- four neighbouring columns of a plain table in one register: the dense blocks of the Newton recursions ------------
def _column_pointer(context: Any, builder: Any, array_type: Any, array: Any, i: Any, k: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, view.shape, array_type.ndim)
    offset = builder.add(builder.mul(i, shape[1]), k)
    return builder.bitcast(builder.gep(view.data, [offset]), VECTOR.as_pointer())


@intrinsic
def ldp(typingctx: Any, a: Any, i: Any, k: Any) -> Any:
    """Columns k..k+3 of row i of a contiguous table, as a pack."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_column_pointer(context, builder, sig.args[0], *args), align=8)

    return signature(PACK, a, types.intp, types.intp), code


@intrinsic
def stp(typingctx: Any, a: Any, i: Any, k: Any, value: Any) -> Any:
    """Store a pack into columns k..k+3 of row i."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[3], _column_pointer(context, builder, sig.args[0], *args[:3]), align=8)
        return context.get_dummy_value()

    return signature(types.void, a, types.intp, types.intp, PACK), code


@intrinsic
def hsum(typingctx: Any, a: Any) -> Any:
    """Sum of the four entries of a pack."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        low = builder.shuffle_vector(args[0], args[0], _mask([0, 1]))
        high = builder.shuffle_vector(args[0], args[0], _mask([2, 3]))
        two = builder.fadd(low, high, flags=FLAGS)
        first, second = (builder.extract_element(two, ir.Constant(I32, k)) for k in (0, 1))
        return builder.fadd(first, second, flags=FLAGS)

    return signature(types.float64, a), code


@intrinsic
def hsum4(typingctx: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sums of four packs, as a pack."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def shuffle(x: Any, y: Any, where: list[int]) -> Any:
            return builder.shuffle_vector(x, y, _mask(where))

        left = builder.fadd(
            shuffle(args[0], args[1], [0, 4, 2, 6]), shuffle(args[0], args[1], [1, 5, 3, 7]), flags=FLAGS
        )
        right = builder.fadd(
            shuffle(args[2], args[3], [0, 4, 2, 6]), shuffle(args[2], args[3], [1, 5, 3, 7]), flags=FLAGS
        )
        return builder.fadd(shuffle(left, right, [0, 1, 4, 5]), shuffle(left, right, [2, 3, 6, 7]), flags=FLAGS)

    return signature(PACK, PACK, PACK, PACK, PACK), code


def _mask(where: list[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(where)), where)


def ld1(a: Any, i: Any) -> Any:
    """Entry i of a vector (of each lane)."""
    return a[i]


def st1(a: Any, i: Any, value: Any) -> None:
    """Store entry i of a vector."""
    a[i] = value


def ld(a: Any, i: Any, k: Any) -> Any:
    """Entry (i, k) of a table (of each lane)."""
    return a[i, k]


def st(a: Any, i: Any, k: Any, value: Any) -> None:
    """Store entry (i, k) of a table."""
    a[i, k] = value


def table(like: Any, n: Any, k: Any) -> Any:
    """An uninitialised table of n rows and k columns, with lanes if the vector ``like`` has them."""
    return np.empty((n, k) + np.shape(like)[1:])


def vector(like: Any, n: Any) -> Any:
    """An uninitialised vector of n entries, with lanes if the vector ``like`` has them."""
    return np.empty((n,) + np.shape(like)[1:])


def number(like: Any, value: Any) -> Any:
    """A constant of the same kind as the entries of the vector ``like``."""
    return np.zeros(np.shape(like)[1:])[()] + value


@overload(ld1, jit_options=PART_OPTIONS, strict=False)
def _ld1(a: Any, i: Any) -> Any:
    if a.ndim == 1:
        return lambda a, i: a[i]
    return lambda a, i: _load_pack(a, (i,))


@overload(st1, jit_options=PART_OPTIONS, strict=False)
def _st1(a: Any, i: Any, value: Any) -> Any:
    if a.ndim == 1:

        def one(a, i, value):  # type: ignore[no-untyped-def]
            a[i] = value

        return one
    return lambda a, i, value: _store_pack(a, (i,), value)


@overload(ld, jit_options=PART_OPTIONS, strict=False)
def _ld(a: Any, i: Any, k: Any) -> Any:
    if a.ndim == 2:
        return lambda a, i, k: a[i, k]
    return lambda a, i, k: _load_pack(a, (i, k))


@overload(st, jit_options=PART_OPTIONS, strict=False)
def _st(a: Any, i: Any, k: Any, value: Any) -> Any:
    if a.ndim == 2:

        def one(a, i, k, value):  # type: ignore[no-untyped-def]
            a[i, k] = value

        return one
    return lambda a, i, k, value: _store_pack(a, (i, k), value)


@overload(table, jit_options=MEMORY_OPTIONS, strict=False)
def _table(like: Any, n: Any, k: Any) -> Any:
    if like.ndim == 1:
        return lambda like, n, k: np.empty((n, k))
    return lambda like, n, k: np.empty((n, k, LANES))


@overload(vector, jit_options=MEMORY_OPTIONS, strict=False)
def _vector(like: Any, n: Any) -> Any:
    if like.ndim == 1:
        return lambda like, n: np.empty(n)
    return lambda like, n: np.empty((n, LANES))


@overload(number, jit_options=PART_OPTIONS, strict=False)
def _number(like: Any, value: Any) -> Any:
    if like.ndim == 1:
        return lambda like, value: float(value)
    return lambda like, value: pack_of(value, value, value, value)


@kernel
def ld3(a, i, k):  # type: ignore[no-untyped-def]
    """Three numbers of row i from column k on."""
    return (ld(a, i, k), ld(a, i, k + 1), ld(a, i, k + 2))


@kernel
def ld6(a, i, k):  # type: ignore[no-untyped-def]
    """Six numbers of row i from column k on."""
    return (ld(a, i, k), ld(a, i, k + 1), ld(a, i, k + 2), ld(a, i, k + 3), ld(a, i, k + 4), ld(a, i, k + 5))


@kernel
def ld9(a, i, k):  # type: ignore[no-untyped-def]
    """Nine numbers of row i from column k on."""
    return (
        ld(a, i, k), ld(a, i, k + 1), ld(a, i, k + 2), ld(a, i, k + 3), ld(a, i, k + 4), ld(a, i, k + 5),
        ld(a, i, k + 6), ld(a, i, k + 7), ld(a, i, k + 8),
    )  # fmt: skip


@kernel
def st3(a, i, k, v):  # type: ignore[no-untyped-def]
    """Store three numbers in row i from column k on."""
    st(a, i, k, v[0])
    st(a, i, k + 1, v[1])
    st(a, i, k + 2, v[2])


@kernel
def st6(a, i, k, v):  # type: ignore[no-untyped-def]
    """Store six numbers in row i from column k on."""
    st(a, i, k, v[0])
    st(a, i, k + 1, v[1])
    st(a, i, k + 2, v[2])
    st(a, i, k + 3, v[3])
    st(a, i, k + 4, v[4])
    st(a, i, k + 5, v[5])


@kernel
def st9(a, i, k, v):  # type: ignore[no-untyped-def]
    """Store nine numbers in row i from column k on."""
    st6(a, i, k, (v[0], v[1], v[2], v[3], v[4], v[5]))
    st3(a, i, k + 6, (v[6], v[7], v[8]))
