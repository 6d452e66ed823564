"""How the points of a contact that touch move with the poses: the derivative of ca and cb of ``contact.gap.gap``.

What rolls touches with other points at the end of a step than at its beginning, so that its slip depends on where these
are (``maximal.contact``). The derivative is taken backwards: given two vectors, the number fa . ca + fb . cb has one
row by the spatial variations eta = (w; v) of each body. The symbols are those of ``contact.gap``; besides

    f_y      derivative of the number by y, where y is a vector that it depends on
    across   1 - n n^T, which takes off the part along a unit vector n
    L        distance of the two points, or of the point and the line
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import TINY, gap
from leastaction.contact.layout import (
    DA,
    DB,
    DISC,
    ELLIPSOID,
    LINE,
    LINES,
    MATRIX,
    OVAL_GAP,
    PLANE,
    RA,
    RB,
    RIM,
    SIGN,
    XA,
    XB,
)
from leastaction.contact.oval_gap import oval_rows
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import entry, kernel
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, join, matmul, matvec, scale3, sub3, tmatvec


@kernel
def across(n, f):
    """``(1 - n n^T) f``."""
    return axpy3(-dot3(n, f), n, f)


@kernel
def point_row(x, fx, e, fe):
    """The row of a body on which the number depends by a point x and a direction e, with derivatives fx and fe."""
    return join(add3(cross(x, fx), cross(e, fe)), fx)


@kernel
def foot(n, x, xb, fa, fb):
    """cb = x - n (n . (x - xb)) and ca = x: derivatives by x, by xb and by the normal n."""
    d = sub3(x, xb)
    along = dot3(n, fb)
    return add3(fa, across(n, fb)), scale3(along, n), axpy3(-dot3(n, d), fb, scale3(-along, d))


@kernel
def plane_rows(kind, F, k, Ra, xa, xb, n, ca, fa, fb):
    """PLANE, DISC and ELLIPSOID; n is the direction of b."""
    ra = F[k, RA]
    if kind == PLANE:
        # ca = xa - ra n; cb is the foot of xa
        fx, fxb, fn = foot(n, xa, xb, fa, fb)
        zero = (0.0, 0.0, 0.0)
        return point_row(xa, fx, zero, zero), point_row(xb, fxb, n, axpy3(-ra, fa, fn))
    fx, fxb, fn = foot(n, ca, xb, fa, fb)
    l = sub3(ca, xa)
    if kind == DISC:
        # l = -ra m, m along n - e (n . e), and turns with n about the axis e and with e
        e = matvec(Ra, row3(F, k, DA))
        c = dot3(n, e)
        s = math.sqrt(1.0 - c * c) if dot3(l, l) > 0.0 and c * c < 1.0 else math.inf
        m = scale3(-1.0 / ra, l)
        fm = scale3(-ra / s, across(m, fx))
        bend = across(e, fm)
        fe = axpy3(-c, fm, scale3(-dot3(e, fm), n))
        return point_row(xa, fx, e, fe), point_row(xb, fxb, n, add3(fn, bend))
    # l = -B y / |y|, y = B^T n: turns with the body, and by the bend J (n - w x n)
    B = matmul(Ra, row9(F, k, MATRIX))
    y, g = tmatvec(B, n), tmatvec(B, fx)
    length = math.sqrt(dot3(y, y))
    bend = scale3(-1.0 / length, matvec(B, across(scale3(1.0 / length, y), g)))
    turn = sub3(cross(l, fx), cross(n, bend))
    row_a = join(add3(cross(xa, fx), turn), fx)
    return row_a, point_row(xb, fxb, n, add3(fn, bend))


@kernel
def point_line_rows(kind, F, k, xa, xb, eb, n, fa, fb):
    """POINTS and LINE: ca = xa - ra n, cb = xb + t eb + rb n, with n along d - t eb, t = eb . d for LINE, else zero."""
    d = sub3(xa, xb)
    t = dot3(eb, d) if kind == LINE else 0.0
    w = axpy3(-t, eb, d)
    L = math.sqrt(dot3(w, w))
    fn = axpy3(-F[k, RA], fa, scale3(F[k, RB], fb))
    fw = scale3(1.0 / L if L > TINY else 0.0, across(n, fn))
    fd, fe = fw, (0.0, 0.0, 0.0)
    if kind == LINE:
        ft = dot3(eb, sub3(fb, fw))
        fd, fe = axpy3(ft, eb, fd), axpy3(t, sub3(fb, fw), scale3(ft, d))
    zero = (0.0, 0.0, 0.0)
    return point_row(xa, add3(fa, fd), zero, zero), point_row(xb, sub3(fb, fd), eb, fe)


@kernel
def lines_rows(F, k, xa, xb, ea, eb, n, fa, fb):
    """LINES: ca = xa + s ea - ra n, cb = xb + t eb + rb n, with n along c = ea x eb; see ``contact.gap.lines_gap``."""
    d, c = sub3(xa, xb), cross(ea, eb)
    s2, b, q = dot3(c, c), dot3(ea, eb), dot3(eb, eb)
    fn = axpy3(-F[k, RA], fa, scale3(F[k, RB], fb))
    if not s2 > TINY:
        # parallel: as if the normal did not turn
        zero = (0.0, 0.0, 0.0)
        return point_row(xa, fa, zero, zero), point_row(xb, fb, zero, zero)
    p, r = dot3(ea, d), dot3(eb, d)
    s = (b * r - p * q) / s2
    t = (r + b * s) / q
    # by t, then by s, of which t is a function
    ft = dot3(eb, fb) / q
    fs = (dot3(ea, fa) + b * ft) / s2
    f_b, f_r, f_p = s * ft + r * fs, ft + b * fs, -q * fs
    # by c: the square of its length below s, and the normal
    fc = axpy3(-2.0 * s * fs, c, scale3(F[k, SIGN] / math.sqrt(s2), across(n, fn)))
    fd = axpy3(f_r, eb, scale3(f_p, ea))
    fea = add3(axpy3(s, fa, scale3(f_b, eb)), axpy3(f_p, d, cross(eb, fc)))
    feb = add3(axpy3(t, fb, scale3(f_b, ea)), axpy3(f_r, d, cross(fc, ea)))
    return point_row(xa, add3(fa, fd), ea, fea), point_row(xb, sub3(fb, fd), eb, feb)


@kernel
def rim_rows(F, k, Ra, xa, xb, eb, n, ca, fa, fb):
    """RIM: ca = xa + ra u, nearest where h = w . t = 0, with the tangent t = e x u and w across the line (see ``gap``).

    With u fixed in the body ca is a point of it against a line or a point; the turn of u makes up for the change of h.
    """
    ra, d = F[k, RA], sub3(ca, xb)
    e, u = matvec(Ra, row3(F, k, DA)), scale3(1.0 / ra, sub3(ca, xa))
    s, w, t = dot3(eb, d), axpy3(-dot3(eb, d), eb, d), cross(e, u)
    # cb = xb + s eb + rb n, n along w, or against it
    L = dot3(n, w)
    fw = scale3(F[k, RB] / L if abs(L) > TINY else 0.0, across(n, fb))
    fs = dot3(eb, sub3(fb, fw))
    fd, fe = axpy3(fs, eb, fw), axpy3(s, sub3(fb, fw), scale3(fs, d))
    fx, fxb = add3(fa, fd), sub3(fb, fd)
    # turn of u
    c = dot3(eb, t)
    bend = ra * (1.0 - c * c) - dot3(w, u)
    turn = -ra * dot3(t, fx) / bend if abs(bend) > TINY else 0.0
    side = axpy3(-c, eb, t)
    fx, fxb = axpy3(turn, side, fx), axpy3(-turn, side, fxb)
    fe = axpy3(-turn * c, d, axpy3(-turn * s, t, fe))
    return point_row(ca, fx, t, scale3(turn, w)), point_row(xb, fxb, eb, fe)


@kernel
def point_rows(kind, F, k, Ra, pa, Rb, pb, n, ca, fa, fb):
    """Rows (6 each) of fa . ca + fb . cb by the motion of a and of b; n and ca are those of ``gap``."""
    xa, xb = add3(pa, matvec(Ra, row3(F, k, XA))), add3(pb, matvec(Rb, row3(F, k, XB)))
    eb = matvec(Rb, row3(F, k, DB))
    if kind in (PLANE, DISC, ELLIPSOID):
        return plane_rows(kind, F, k, Ra, xa, xb, n, ca, fa, fb)
    if kind == OVAL_GAP:
        return oval_rows(F, k, Ra, xa, xb, eb, ca, fa, fb)
    if kind == RIM:
        return rim_rows(F, k, Ra, xa, xb, eb, n, ca, fa, fb)
    if kind == LINES:
        return lines_rows(F, k, xa, xb, matvec(Ra, row3(F, k, DA)), eb, n, fa, fb)
    return point_line_rows(kind, F, k, xa, xb, eb, n, fa, fb)


@entry
def touching_rows(ints, F, k, P, f, out):
    """``point_rows`` of contact k of a table at poses P, as an entry; f (2, 3): fa, fb; out (2, 6): both rows."""
    a, b = ints[k, 1], ints[k, 2]
    Ra, pa, Rb, pb = row9(P, a, 0), row3(P, a, 9), row9(P, b, 0), row3(P, b, 9)
    found = gap(ints[k, 0], F, k, Ra, pa, Rb, pb)
    rows = point_rows(ints[k, 0], F, k, Ra, pa, Rb, pb, found[1], found[4], row3(f, 0, 0), row3(f, 1, 0))
    for c in range(6):
        out[0, c], out[1, c] = rows[0][c], rows[1][c]
