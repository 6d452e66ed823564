"""The tables of contact: what may touch, and the contacts that were found at one configuration. No Numba here.

``Contacts`` is made when a model is built. ``features`` (``contact/features.py``) fills two further tables,
one row for each contact, which stay frozen during a step:

    ints    (nc, 4)   kind of gap, row a, row b (0 is the world), pair (row of ``Contacts.pairs``)
    floats  (nc, 24)  point on a in the frame of row a (3), radius a; point on b in the frame of row b (3), radius b;
                      direction da in the frame of row a (3); direction db in the frame of row b (3);
                      nine numbers of the kind; number of the feature within its pair

    kind       gap                                                        xa, xb the points, ea, eb the directions
    PLANE      n . (xa - xb) - ra                                         n = eb, a unit normal that points from b to a
    POINTS     |xa - xb| - ra - rb                                        n along xa - xb
    LINES      sign (ea x eb) / |ea x eb| . (xa - xb) - ra - rb           sign in column SIGN, so that apart is positive
    LINE       |(1 - eb eb^T) (xa - xb)| - ra - rb                        n along the projected difference
    DISC       n . (xa - xb) - ra sqrt(1 - (n . ea)^2)                    n = eb; rim with centre xa and axis ea
    ELLIPSOID  n . (xa - xb) - |B^T Ra^T n|                               n = eb; B (3 x 3) in columns MATRIX on
    OVAL_GAP   distance of xb, or of the line along eb through it, from the ellipsoid of xa and B, less rb
    RIM        n . (x - y) - rb                                           x nearest to y on the rim with centre xa, axis
                                                                          ea, radius ra; y on the line, or y = xb where
                                                                          there is no direction db

POINTS and LINE keep in da the normal of the configuration at which they were found, for points that coincide. RIM has
in columns START on the direction from the centre to the nearest point there, in the frame of row a, from which the
search for the nearest point begins. Its normal is along x - y where SIGN is 0; it is SIGN times the product of the
tangent of the rim and the line where they cross, so that they may pass each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.tree.layout import Floats, Ints

# A touch with restitution is located to this part of the way that the points move in a step, and to nothing finer than
# TOUCH_LEAST, in metres: nearer, the barrier of the contact would push.
TOUCH_SHARE, TOUCH_LEAST = 3e-3, 1e-7

# kinds of gaps
PLANE, POINTS, LINES, LINE, DISC, ELLIPSOID, RIM, OVAL_GAP = 0, 1, 2, 3, 4, 5, 6, 7
KINDS = 8

# kinds whose middle is the material point of body a that rolls; kinds that go on where their features end
CENTRED, ENDLESS = (DISC, ELLIPSOID, OVAL_GAP), (LINES, LINE, RIM, DISC, OVAL_GAP)

# columns of the table of integers
GAP, ROW_A, ROW_B, PAIR, INT_WIDTH = 0, 1, 2, 3, 4

# columns of the table of numbers
XA, RA, XB, RB, DA, DB, SIGN, MATRIX, START, FEATURE, FLOAT_WIDTH = 0, 3, 4, 7, 8, 11, 14, 14, 15, 23, 24

# kinds of shapes; in a pair the smaller number comes first
POINT_SET, SPHERE, CAPSULE, CYLINDER, BOX, OVAL, HULL, HALF_SPACE, HEIGHTS = 0, 1, 2, 3, 4, 5, 6, 7, 8

# columns of Contacts.shapes and of Contacts.frames
CODE, ROW, FIRST, COUNT, COUNT_Y, SHAPE_WIDTH = 0, 1, 2, 3, 4, 5
TURN, PLACE, SIZE, REACH, FRAME_WIDTH = 0, 9, 12, 15, 16


# places of ``contact.broad.Near.number``
LISTED, VALID, FULL = 0, 1, 2


class Hulls(NamedTuple):
    """Faces and edges of convex hulls, in the frames of their rows; their corners are points of ``Contacts``.

    spans   (nh, 4)  first face and how many, first edge and how many
    planes  (nf, 4)  outward unit normal of each face, and its distance from the origin of the row along it
    faces   (nf, 2)  first row of ``loops`` and how many
    loops   (nl, 2)  corners around each face, counterclockwise from outside, and the edge to the next corner
    edges   (ne, 4)  two corners, two faces
    """

    spans: Ints
    planes: Floats
    faces: Ints
    loops: Ints
    edges: Ints


class Contacts(NamedTuple):
    """Pairs of shapes that may touch.

    pairs    (np, 3)  shape a, shape b, largest number of contacts at a time
    numbers  (np, 2)  friction coefficient, restitution
    shapes   (ns, 5)  code, row, and of a point set its first point and how many, of a hull also its row of
                      ``hulls.spans``, of a height field its first height, rows and columns
    frames   (ns, 16) rotation (9) and position (3) of the shape in the frame of its row; sizes (3); radius of a ball
                      about the position that holds the shape (infinite for half-spaces and height fields). Sizes:
                      SPHERE radius; CAPSULE and CYLINDER radius, half length, axis z; BOX half sides; OVAL half axes;
                      HALF_SPACE none, normal z; HEIGHTS spacing along x and y, heights along z
    capsules (ns, 4)  a capsule about the position that holds the shape: half its axis in the frame of the row, radius
    points   (nk, 3)  points of point sets, in the frames of their rows, metres
    heights  (nh,)    heights of height fields, x by x, metres
    boxes    (nb,)    rows of ``pairs`` with two boxes
    rounds   (nr,)    rows of ``pairs`` with a capsule or cylinder against a capsule, cylinder or box
    ovals    (no,)    rows of ``pairs`` with an ellipsoid against a capsule, cylinder or ellipsoid
    hulls             faces and edges of convex hulls that meet other bodies

    The last five are None where a mechanism has none, so that a smaller program is compiled for it.
    """

    pairs: Ints
    numbers: Floats
    shapes: Ints
    frames: Floats
    capsules: Floats
    points: Floats
    heights: Floats | None
    boxes: Ints | None
    rounds: Ints | None
    ovals: Ints | None
    hulls: Hulls | None


def no_contacts() -> Contacts:
    """The tables of a mechanism in which nothing may touch."""
    i, f = (lambda width: np.zeros((0, width), dtype=np.int64)), (lambda width: np.zeros((0, width)))
    tables = i(3), f(2), i(SHAPE_WIDTH), f(FRAME_WIDTH), f(4), f(3)
    return Contacts(*tables, None, None, None, None, None)


# What a contact did in a step: pair, feature, gap (m), normal force (N), force on body a in the world (3, N), point
# where it acts (3, m), slip in the step (m), row of body a, friction force (N).
CONTACT_COLUMNS = 13
