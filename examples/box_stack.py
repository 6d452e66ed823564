"""A stack of boxes stands, and stays: hard contact with friction, nothing sinks or creeps."""

import numpy as np

import leastaction as la

m = la.Mechanism("stack")
for k in range(5):
    size = 0.2 - 0.02 * k
    m.add_body(f"box{k}", shape=la.Box((size, size, 0.1)), mass=1.0)
    m.add_joint(f"free{k}", "free", parent="world", child=f"box{k}", parent_frame=la.pose((0.0, 0.0, 0.05 + 0.1 * k)))
m.add_ground(friction=0.6)
m.add_contacts(friction=0.6)
model = m.build()

run = la.simulate(model, dt=0.005, duration=5.0, save_every=10)
print(run.report)
moved = np.abs(run.q - run.q[0]).max()
print(f"boxes moved by {1e6 * moved:.3f} um in 5 s; fastest at the end {np.abs(run.v[-1]).max():.1e} m/s")
assert moved < 1e-6
run.to_html("box_stack.html")
print("wrote box_stack.html")
