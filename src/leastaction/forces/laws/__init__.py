"""Laws of forces on bodies that compiled code calls by address: one file a law.

A law gets 18 numbers of each of its k bodies, as ``forces.bodies.give_bodies`` lays them out: rotation of the link
frame by rows (9), its origin in the world (3), angular and linear velocity in link axes (6); and behind these its own
numbers. It writes body wrenches (k, 6), torque and force in link axes. Its derivatives are K and D, each (6k, 6k) by
rows, K first: by displacements xi of the links in E <- E exp(xi) at fixed body twists, and by the twists. Every entry
is written; what it gets is not changed.
"""
