"""A robot from a URDF file holds a pose: servos with PD gains in its joints, inside the compiled step."""

from pathlib import Path

import numpy as np

import leastaction as la

m = la.load(Path(__file__).parent / "arm.urdf")
m.add_actuator("shoulder_servo", "shoulder", kp=400.0, kd=20.0)
m.add_actuator("elbow_servo", "elbow", kp=150.0, kd=6.0)
model = m.build()

# the inputs of servos are their targets
run = la.simulate(model, dt=0.005, duration=3.0, ctrl={"shoulder_servo": 0.8, "elbow_servo": -0.5})
print(run.report)

# at rest the springs of the servos carry the weight
sag = np.array([0.8, -0.5]) - run.q[-1]
weight = la.gravity_forces(model, run.q[-1])
print("joints", run.q[-1].round(4), "rad; below the targets by", sag.round(4), "rad")
assert np.abs(sag * (400.0, 150.0) - weight).max() < 1e-3
run.to_html("urdf_pd.html")
print("wrote urdf_pd.html")
