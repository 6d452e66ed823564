"""One MJCF model under leastaction and under MuJoCo: a double pendulum, and what happens to its energy."""

import mujoco
import numpy as np

import leastaction as la

MODEL = """
<mujoco model="pendulum"><option timestep="0.01"/><worldbody>
  <body name="upper"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03"/>
    <body name="lower" pos="0 0 -0.5"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03"/></body></body>
</worldbody></mujoco>"""
with open("pendulum.xml", "w", encoding="utf-8") as file:
    file.write(MODEL)

model = la.load("pendulum.xml").build()
run = la.simulate(model, model.state(q=[1.5, 0.0]), dt=0.01, duration=60.0)

theirs = mujoco.MjModel.from_xml_string(MODEL)
data = mujoco.MjData(theirs)
data.qpos[:] = 1.5, 0.0
energy = []
for _ in range(6000):
    mujoco.mj_step(theirs, data)
    energy.append(la.energy(model, data.qpos.copy(), data.qvel.copy()).total)

ours = np.abs(run.energy.total - run.energy.total[0]).max()
other = np.abs(np.array(energy) - run.energy.total[0]).max()
print(f"largest change of energy in 60 s at 10 ms: {ours:.1e} J here ({run.report.method}), {other:.1e} J in MuJoCo")
assert ours < 0.1 * other
