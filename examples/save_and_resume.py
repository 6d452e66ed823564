"""A run in two parts, through a file, is the run in one, to the last bit."""

import numpy as np

import leastaction as la

model = la.models.double_pendulum().build()
start = model.state(q=[1.0, 0.5])
options = {"dt": 0.01, "method": la.Galerkin(4)}

# the first half into a file, which holds the mechanism too; a long run would write it on its way by checkpoint=
half = la.simulate(model, start, duration=5.0, **options)
half.save("half.npz")

# another program, another day
whole = la.resume("half.npz", 5.0)
once = la.simulate(model, start, duration=10.0, **options)
print("rows", len(half.t), len(whole.t), len(once.t))
assert np.array_equal(whole.q, once.q)
assert np.array_equal(whole.v, once.v)
print("the run in two parts is the run in one")
whole.save("whole.npz")
