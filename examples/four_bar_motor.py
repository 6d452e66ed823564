"""A motor turns the crank of a four-bar: the loop stays closed, and the power of the motor goes into the damper."""

import leastaction as la

m = la.models.four_bar()
m.joints["rocker_hinge"].damping = 0.02
m.add_actuator("motor", "crank_hinge", kd=0.5)
model = m.build()

# the input of a servo without kp is a speed
run = la.simulate(model, dt=0.002, duration=4.0, ctrl={"motor": 8.0})
print(run.report)

speed = run.velocities("crank_hinge")[:, 0]
print(f"crank {speed[len(speed) // 2 :].mean():.3f} rad/s, loop open by at most {run.constraint_error.max():.1e} m")
assert run.constraint_error.max() < 1e-9
assert abs(speed[len(speed) // 2 :].mean() - 8.0) < 0.5
run.to_html("four_bar_motor.html", traces={"coupler": (0.0, 0.0, 0.0)})
print("wrote four_bar_motor.html")
