"""A quadruped trots on the ground: servos follow swinging targets, feet touch with hard contact and friction."""

import numpy as np

import leastaction as la

m = la.models.quadruped()
legs = ("FR", "FL", "RR", "RL")
for leg in legs:
    for part in ("hip", "thigh", "calf"):
        m.actuators.pop(f"{leg}_{part}_motor")
        m.add_actuator(f"{leg}_{part}", f"{leg}_{part}_joint", kp=80.0, kd=2.0, effort=33.5)
m.add_ground(friction=0.8)
m.enforce_limits()
model = m.build()

stand = {f"{leg}_{part}_joint": angle for leg in legs for part, angle in (("thigh", 0.8), ("calf", -1.6))}
dt, steps = 0.002, 2000
ctrl = np.zeros((steps, len(model.actuator_names)))
for leg, phase in zip(legs, (0.0, np.pi, np.pi, 0.0), strict=True):
    swing = 2 * np.pi * 2.0 * dt * np.arange(steps) + phase
    lift = np.maximum(np.sin(swing), 0.0)
    ctrl[:, model.actuator_names.index(f"{leg}_thigh")] = 0.8 + 0.12 * np.cos(swing) + 0.3 * lift
    ctrl[:, model.actuator_names.index(f"{leg}_calf")] = -1.6 - 0.6 * lift

run = la.simulate(model, model.state(q={**stand, "root": (0, 0, 0.32, 1, 0, 0, 0)}), dt=dt, duration=4.0, ctrl=ctrl)
print(run.report)
x, height = run.q[:, 0], run.q[:, 2]
print(f"walked {x[-1] - x[0]:.2f} m, trunk at {height[500:].min():.2f} to {height[500:].max():.2f} m")
assert height[500:].min() > 0.2
run.to_html("quadruped_trot.html")
print("wrote quadruped_trot.html")
