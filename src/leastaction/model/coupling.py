"""Couplings between joints: gears, differentials, racks, cams and joints that follow others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_name, check_number, quoted
from leastaction.model.elements import Joint
from leastaction.model.joints import Piece, layout
from leastaction.tree import layout as kl

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism

# Linear couplings whose right-hand sides are off by more than this, relative to their terms, contradict each other.
_CONTRADICTION = 1e-9


class CouplingTerm(NamedTuple):
    """A polynomial of one joint coordinate without a constant part: its powers 1, 2, ... times ``coefficients``."""

    joint: str
    coordinate: int
    coefficients: tuple[float, ...]

    @property
    def label(self) -> str:
        """Words that name the coordinate."""
        return f"'{self.joint}'" + (f" (coordinate {self.coordinate})" if self.coordinate else "")


@dataclass(frozen=True, eq=False)
class Coupling:
    """A sum of polynomials of joint coordinates that keeps its value: an equality constraint.

    Attributes:
        name: unique among couplings and joints.
        terms: one for each coordinate.
        total: what the terms add up to.
    """

    name: str
    terms: tuple[CouplingTerm, ...]
    total: float = 0.0

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of its joints."""
        return tuple(dict.fromkeys(term.joint for term in self.terms))

    @property
    def label(self) -> str:
        """Words that name it in messages."""
        return f"coupling '{self.name}' of {', '.join(term.label for term in self.terms)}"


def make_coupling(name: Any, terms: Any, total: Any = 0.0) -> Coupling:
    """A checked coupling; see ``Mechanism.add_coupling``."""
    where = f"coupling '{check_name(name, 'coupling')}'"
    if not isinstance(terms, Mapping) or not terms:
        raise ModelError(f"{where}: give {{joint: coefficient}}, as {{'wheel': 2.0, 'pinion': 1.0}}, got {terms!r}.")
    found: list[CouplingTerm] = []
    for key, given in terms.items():
        joint, coordinate = key if isinstance(key, tuple) and len(key) == 2 else (key, 0)
        check_name(joint, f"{where}: joint")
        if isinstance(coordinate, bool) or not isinstance(coordinate, int | np.integer) or coordinate < 0:
            raise ModelError(f"{where}: joint '{joint}': a coordinate is a number from 0 on, got {coordinate!r}.")
        numbers = np.atleast_1d(check_array(given, f"{where}: joint '{joint}'"))
        if numbers.ndim != 1 or not numbers.any():
            what = "a coefficient that is not zero, or those of the powers 1, 2, ..."
            raise ModelError(f"{where}: joint '{joint}': give {what}, got {given!r}.")
        last = int(np.flatnonzero(numbers)[-1]) + 1
        found.append(CouplingTerm(joint, int(coordinate), tuple(numbers[:last].tolist())))
        if any(term[:2] == found[-1][:2] for term in found[:-1]):
            raise ModelError(f"{where}: the coordinate of joint {found[-1].label} stands in it twice.")
    return Coupling(name, tuple(found), check_number(total, f"{where}: total"))


def check_couplings(mechanism: Mechanism) -> None:
    """Every coupling stands under its name, which no joint has, and its coordinates exist."""
    for key, coupling in mechanism.couplings.items():
        where = f"coupling '{key}'"
        if coupling.name != key:
            raise ModelError(f"{where}: the record says '{coupling.name}'; names and keys must agree.")
        if key in mechanism.joints:
            raise ModelError(f"{where}: there is a joint of this name; give the coupling another one.")
        for term in coupling.terms:
            if term.joint not in mechanism.joints:
                known = quoted(list(mechanism.joints)[:20])
                raise ModelError(f"{where}: there is no joint {term.joint!r}; there are {known}.")
            _piece(mechanism.joints[term.joint], term, where)


def _piece(joint: Joint, term: CouplingTerm, where: str) -> Piece:
    """The screw coordinate of a term."""
    if joint.kind == "free" or joint.spline is not None:
        what = "relative to the world" if joint.kind == "free" else "along a spline"
        raise ModelError(
            f"{where}: joint '{joint.name}' is {joint.kind}; its coordinates are {what}, and couplings take those of "
            "turns and slides."
        )
    pieces = layout(joint)
    if not 0 <= term.coordinate < joint.nq:
        size = f"it has {joint.nq} coordinates, from 0" if joint.nq else f"a {joint.kind} joint has no coordinates"
        raise ModelError(f"{where}: joint '{joint.name}': coordinate {term.coordinate} is out of range; {size}.")
    piece = next(piece for piece in pieces if piece.q.start <= term.coordinate < piece.q.stop)
    if piece.factor == "ball":
        raise ModelError(
            f"{where}: joint '{joint.name}': its coordinate {term.coordinate} is one of a quaternion, which cannot be "
            "coupled; couplings take those of turns and slides."
        )
    return piece


def tie_table(
    couplings: Iterable[Coupling], joints: Mapping[str, Joint], views: Mapping[str, Any], tree: kl.Tree,
    coordinates: kl.Coordinates, start: int,
) -> tuple[kl.Ties, dict[str, slice]]:  # fmt: skip
    """Couplings as tables, and the place of each among the constraint rows, from ``start`` on.

    Coordinates of locked joints are numbers; a coupling that has no others must hold, and has no row.

    Raises:
        ModelError: couplings contradict each other, or the joints that are locked.
    """
    kind: list[tuple[int, ...]] = []
    bodies: list[int] = []
    terms: list[tuple[int, ...]] = []
    series: list[tuple[float, ...]] = []
    level: list[float] = []
    slices: dict[str, slice] = {}
    kept: list[Coupling] = []
    for coupling in couplings:
        first, own, constant = len(terms), [], -coupling.total
        for term in coupling.terms:
            joint, view = joints[term.joint], views.get(term.joint)
            if view is None:
                # locked: ``Mechanism.check`` has refused what has no coordinates at all
                constant += _value(term, float(np.asarray(joint.locked)[term.coordinate]))
                continue
            x = int(np.flatnonzero(coordinates.q == view.q.start + term.coordinate)[0])
            row = int(np.flatnonzero((tree.rows[1:, kl.IX] == x) & (tree.rows[1:, kl.KIND] != kl.BALL))[0]) + 1
            parent = int(tree.rows[row, kl.PARENT])
            own += [body for body in (row, parent) if body > 0 and body not in own]
            place = own.index(parent) if parent > 0 else -1
            terms.append((row, x, int(tree.rows[row, kl.IU]), own.index(row), place))
            series.append(term.coefficients)
        at = start + len(kind)
        if len(terms) == first:
            if abs(constant) > _CONTRADICTION * (1.0 + abs(coupling.total)):
                raise ModelError(f"{coupling.label}: all of its joints are locked where it is open by {constant:.3g}.")
            slices[coupling.name] = slice(at, at)
            continue
        kind.append((first, len(terms) - first, len(bodies), len(own)))
        bodies += own
        level.append(constant)
        slices[coupling.name] = slice(at, at + 1)
        kept.append(coupling)
    width = max((len(each) for each in series), default=1)
    table = kl.Ties(
        np.array(kind, dtype=np.int64).reshape(-1, 4),
        np.array(bodies, dtype=np.int64),
        np.array(terms, dtype=np.int64).reshape(-1, 5),
        np.array([(*each, *[0.0] * (width - len(each))) for each in series]).reshape(-1, width),
        np.array(level),
    )
    _check_contradictions(kept, table, tree)
    return table, slices


def _value(term: CouplingTerm, x: float) -> float:
    """The polynomial of a term."""
    return float(np.polynomial.polynomial.polyval(x, (0.0, *term.coefficients)))


def _check_contradictions(couplings: list[Coupling], ties: kl.Ties, tree: kl.Tree) -> None:
    """Raise where linear couplings leave no coordinates that satisfy them all."""
    rows, right, names = [], [], []
    for coupling, (first, count, *_), level in zip(couplings, ties.kind.tolist(), ties.level, strict=True):
        if ties.series[first : first + count, 1:].any():
            continue
        row = np.zeros(len(tree.rates))
        np.add.at(row, ties.terms[first : first + count, 2], ties.series[first : first + count, 0])
        size = float(np.abs(row).max())
        rows.append(row / size)
        right.append(-level / size)
        names.append(coupling)
        A, b = np.array(rows), np.array(right)
        off = np.abs(A @ np.linalg.lstsq(A, b, rcond=1e-12)[0] - b)
        if off.max() > _CONTRADICTION * (1.0 + np.abs(b).max()):
            others = [names[k].label for k in np.flatnonzero(off > 1e-3 * off.max()) if names[k] is not coupling]
            raise ModelError(f"{coupling.label} contradicts {', '.join(others)}; leave one of them out.")


def tie_rows_at(ties: kl.Ties, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures (k,) of all terms at coordinates x of the rows."""
    y = x[ties.terms[:, 1]]
    powers = np.arange(1, ties.series.shape[1] + 1)
    slope = (ties.series * powers * y[:, None] ** (powers - 1)).sum(axis=1)
    bend = (ties.series * powers * (powers - 1) * y[:, None] ** np.maximum(powers - 2, 0)).sum(axis=1)
    return slope, bend


def coupling_to_dict(coupling: Coupling) -> dict[str, Any]:
    """Plain JSON types of a coupling."""
    terms = [
        {"joint": term.joint, "coordinate": term.coordinate, "coefficients": list(term.coefficients)}
        for term in coupling.terms
    ]
    return {"name": coupling.name, "terms": terms, "total": coupling.total}
