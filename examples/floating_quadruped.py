"""A quadruped thrown into the air without gravity: it tumbles, and its momenta stay."""

import numpy as np

import leastaction as la

m = la.models.quadruped()
m.gravity = np.zeros(3)
model = m.build()

# the trunk turns and flies, the legs swing
stance = {f"{leg}_calf_joint": -1.2 for leg in ("FR", "FL", "RR", "RL")}
start = model.state(q=stance, v={"root": (0.5, 1.0, 2.0, 0.3, 0.0, 0.1), "FR_thigh_joint": 4.0, "RL_thigh_joint": -4.0})
run = la.simulate(model, start, dt=0.005, duration=5.0, method=la.Galerkin(2))

# no outside force: both momenta are constant, although every leg swings
for name in ("linear", "angular"):
    p = getattr(run.momentum, name)
    change = np.abs(p - p[0]).max()
    print(f"{name} momentum {np.round(p[0], 3)}, largest change {change:.1e}")
    assert change < 1e-9

# the centre of mass moves on a straight line
com = la.center_of_mass(model, run.q)
line = com[0] + np.outer(run.t, run.momentum.linear[0] / model.total_mass)
print(f"the centre of mass leaves its straight line by at most {np.abs(com - line).max():.1e} m")

run.to_html("quadruped.html", traces=["FR_foot"])
print("wrote quadruped.html")
