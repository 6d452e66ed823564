"""A thousand pendulums at once: how far apart small differences of the start come."""

import numpy as np

import leastaction as la

model = la.models.chain(4).build()
rng = np.random.default_rng(0)
q = 0.8 + 1e-3 * rng.normal(size=(1000, model.nq))

many = la.simulate_many(
    model, (q, np.zeros((1000, model.nv))), dt=0.005, duration=4.0, method=la.Galerkin(2), save_every=100, threads=2
)
spread = many.q.std(axis=0).max(axis=1)
for t, each in zip(many.t, spread, strict=True):
    print(f"{t:4.1f} s  {each:.2e} rad")
print("four at a time:", many.lanes, "- failed:", int(many.failed.sum()))
assert not many.failed.any()
assert spread[-1] > 10 * spread[0]
