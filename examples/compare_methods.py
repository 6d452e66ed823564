"""What an error costs: several methods at several steps against a reference, in one figure."""

import leastaction as la

model = la.models.double_pendulum().build()
start = model.state(q=[1.2, 0.4])
duration = 4.0

# far more accurate than everything below
reference = la.simulate(model, start, dt=0.005, duration=duration, method=la.Adaptive(1e-12, 1e-12))

runs = []
for method in (la.Galerkin(2), la.Galerkin(4), la.Galerkin(6), la.RungeKutta(4), la.SemiImplicitEuler()):
    for dt in (0.02, 0.01, 0.005):
        runs.append(la.simulate(model, start, dt=dt, duration=duration, method=method))

la.compare(runs, "compare_methods.png", reference=reference)
print("wrote compare_methods.png")

# the best and the worst of them as numbers
for run in (runs[8], runs[-3]):
    drift = abs(run.energy.total - run.energy.total[0]).max()
    print(f"{run.method.label} at dt = {run.dt:g} s: energy drift {drift:.1e} J, {run.report.wall_time:.2g} s")
