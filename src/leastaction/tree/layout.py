"""The plain arrays that kernels read: what a Model is to compiled code. No Numba here.

A mechanism is a tree of *rows*. Row 0 is the world; row i > 0 is one joint factor together with what is rigidly
attached behind it: a screw (one coordinate about or along its own z axis), a ball (a unit quaternion) or a coordinate
of a spline. Parents come before children. The last factor of a joint carries the child body; the factors before it
are massless.

Coordinates and rates of the rows, in row order, are called x and u here; the user's q and v are in joint order
and are translated in ``tree/coordinates.py`` alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# kinds of rows; a surface has a second row with the second of its coordinates
REVOLUTE, PRISMATIC, HELICAL, BALL, SPLINE, SPLINE_MORE = 0, 1, 2, 3, 4, 5

# columns of Tree.rows
PARENT, KIND, IX, IU = 0, 1, 2, 3

# columns of Tree.const: constant pose before the motion, body, pitch
ROT, POS, MASS, COM, INERTIA, PITCH, CONST_WIDTH = 0, 9, 12, 13, 16, 22, 23


# columns of Tree.parts
PART_MASS, PART_ARM = 0, 1


class Splines(NamedTuple):
    """Curves and surfaces that joints move along.

    kind    (ns, 7)   first row, coordinates (1 a curve, 2 a surface), first entry in ``data``, control points in each
                      direction, and whether each direction is closed
    number  (n+1,)    spline of each row, or -1
    data    (k, 18)   control points: of a curve the frame (rotation, position) and the logarithm from the frame before
                      to it; of a surface, row by row, x, y, z and three angles
    """

    kind: Ints
    number: Ints
    data: Floats


class Tree(NamedTuple):
    """Topology and constants of a tree; n rows besides the world, nx coordinates, nu rates.

    rows      (n+1, 4)  parent row, kind, first coordinate, first rate
    const     (n+1, 23) rotation (9) and position (3) from the parent row to this row before its motion;
                        mass, centre of mass (3), second moment about it (xx xy xz yy yz zz), in row axes; pitch
    rates     (nu, 2)   row of a rate; the rate before it on the way to the world, or -1
    armature  (nu,)     rotor inertia of each rate
    gravity   (3,)      acceleration of gravity in the world
    origin    (k+1, 3)  row 0: origin of the kernels at x = 0; row j > 0: how coordinate moves[j-1] shifts it
    moves     (k,)      coordinates of translations that carry a whole tree
    splines             tables of the spline joints, or None
    part      (n+1,)    which part of the model a row belongs to: bodies that joints, couplings, forces or constraints
                        connect, the world left out; no tolerance of one part depends on another
    parts     (k, 2)    mass and typical arm of the bodies of each part
    """

    rows: Ints
    const: Floats
    rates: Ints
    armature: Floats
    gravity: Floats
    origin: Floats
    moves: Ints
    splines: Splines | None
    part: Ints
    parts: Floats


class Turned(NamedTuple):
    """Free joints that turn first and then translate along child axes, for methods that ask for it.

    free    (m, 2)   first coordinate x and first rate u of each of them (a ball, then three translations)
    offset  (m, 3)   centre of mass in the child frame
    """

    free: Ints
    offset: Floats


class Coordinates(NamedTuple):
    """How the user's q and v become x and u.

    q       (nx,)    x[k] = q[q[k]] before the shift to the centre of mass of free joints
    v       (nu,)    u[k] = v[v[k]] likewise
    free    (m, 2)   first coordinate x and first rate u of each free joint (three translations, then a ball)
    offset  (m, 3)   centre of mass in the child frame of each free joint
    turned           free joints in the other order, or None
    """

    q: Ints
    v: Ints
    free: Ints
    offset: Floats
    turned: Turned | None


class JointForces(NamedTuple):
    """Springs and dampers in the joints, in the user's coordinates.

    screw    (ns, 2)  coordinate q and rate v of every single coordinate that has a spring, damper or law
    spring   (ns, 3)  stiffness, rest, damping
    law      (ns, 5)  addresses of f(q), its energy, f(v), and the derivatives of f(q) and f(v); 0 where there is none
    ball     (nb, 2)  first coordinate and rate of every ball with a spring or damper
    ball_data (nb, 10) stiffness (3), rest quaternion (4), damping (3)
    free     (nf, 2)  first coordinate and first *linear* rate of every free joint with a spring or damper; its ball
                      part is in ``ball``
    free_data (nf, 9) stiffness (3), rest position (3), damping (3) of the translation
    """

    screw: Ints
    spring: Floats
    law: Ints
    ball: Ints
    ball_data: Floats
    free: Ints
    free_data: Floats


# kinds of body forces
POINT_SPRING, POINT_FORCE, WRENCH, USER_FORCE, TENDON = 0, 1, 2, 3, 4


class Forces(NamedTuple):
    """Forces on bodies.

    kind     (nf, 3)  kind, first entry in ``bodies``, number of bodies
    bodies   (nb,)    row of each body that a force touches (0 is the world)
    frames   (nb, 12) link frame (rotation, position) of that body in its row
    data     (nf, 10) POINT_SPRING: points in the row frames (6), stiffness, damping, rest length;
                      POINT_FORCE: force (3), unused (3), point in the link frame (3), 1 if the force is in link axes;
                      WRENCH: torque and force (6) at the link origin, unused (3), 1 if in link axes;
                      USER_FORCE, TENDON: place and number of its own numbers in ``numbers``
    address  (nf, 3)  function (t, in, out) of a force that depends on time or is a function, of the derivatives K and
                      D of a force that is one, and of the length of a tendon; 0 where there is none
    numbers  (n,)     what functions of forces get beside the bodies: stiffnesses, points, ...
    """

    kind: Ints
    bodies: Ints
    frames: Floats
    data: Floats
    address: Ints
    numbers: Floats


# kinds of coupling rows of a loop joint
NO_COUPLING, UNIVERSAL, HELICAL_COUPLING = 0, 1, 2


class Ties(NamedTuple):
    """Couplings between coordinates of joints: level + sum of polynomials of single coordinates = 0, one row each.

    kind    (nt, 4)  first entry in ``terms``, number of terms, first entry in ``bodies``, number of bodies
    bodies  (nb,)    rows of the coordinates and their parents, without the world
    terms   (k, 5)   row of a coordinate (a screw), coordinate x, rate u; place of the row among the bodies of its
                     coupling, and that of its parent (-1 for the world)
    series  (k, d)   coefficients of the powers 1..d of the coordinate
    level   (nt,)    constant part
    """

    kind: Ints
    bodies: Ints
    terms: Ints
    series: Floats
    level: Floats


class Loops(NamedTuple):
    """Joints that close loops, and couplings between joints, whose constraints come after those of the joints.

    rows     (nl, 6)  row of parent body, row of child body, first constraint, translation rows, rotation rows,
                      coupling kind
    frame    (nl, 24) joint frame in the parent row (rotation, position) and in the child row
    select   (nl, 18) translation rows (3 x 3) and rotation rows (3 x 3), unused ones zero
    coupling (nl, 7)  axis (3), second axis (3), pitch or cosine
    ties              couplings between coordinates of joints
    """

    rows: Ints
    frame: Floats
    select: Floats
    coupling: Floats
    ties: Ties


# kinds of constraints of the user
EQUALITY, VELOCITY = 0, 1

# Where a coupling goes when its row is eliminated (``maximal.graph``): nowhere, as its parent is the world; it keeps
# its place; it is added to another pair, or to one in the axes of the other node, or to the parent's diagonal block.
NOWHERE, STAYS, ADDED, TURNED, ON_DIAGONAL = -1, 0, 1, 2, 3


class Constraints(NamedTuple):
    """Equality and velocity constraints of the user.

    kind     (nc, 5)  kind, first entry in ``bodies``, number of bodies, first row, number of rows
    bodies   (nb,)    row of each body that a constraint touches (0 is the world)
    frames   (nb, 12) link frame (rotation, position) of that body in its row
    address  (nc,)    function (t, in, out): poses and twists of the bodies to values and Jacobian, row by row
    own      (nc, 2)  place and number of its own numbers in ``numbers``, which the function gets before the bodies
    numbers  (n,)     what functions get beside the bodies
    """

    kind: Ints
    bodies: Ints
    frames: Floats
    address: Ints
    own: Ints
    numbers: Floats


class System(NamedTuple):
    """Everything a smooth simulation needs, in one argument.

    A mechanism with neither forces nor loops nor constraints has None for all, so that a smaller program is compiled
    for it.
    """

    tree: Tree
    coordinates: Coordinates
    passive: JointForces
    forces: Forces | None
    loops: Loops | None
    constraints: Constraints | None
