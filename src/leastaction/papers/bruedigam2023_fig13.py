"""A quadruped learns to walk by random search over five parameters of its gait, on hard ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model
    from leastaction.run.trajectory import Trajectory

_DT, _FRICTION = 0.001, 0.8
_PROPORTIONAL, _DERIVATIVE = np.array([100.0, 80.0, 60.0]), np.array([5.0, 4.0, 3.0])

# frequency, amplitude and middle of the thighs, amplitude and middle of the calves: standing
_STANDING = np.array([0.1, 0.0, 1.0, 0.0, -1.5])

# legs and their phases: diagonal pairs move together
_LEGS = {"FR": 0.0, "RL": 0.0, "FL": np.pi, "RR": np.pi}
_ABOVE = 1e-4


class _Episode(NamedTuple):
    """Parameters, distance walked forwards (m), lowest point of a foot (m), steps, and why it stopped."""

    parameters: FloatArray
    distance: float
    lowest: float
    steps: int
    failure: str


@experiment(
    "bruedigam2023-fig13",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 13",
    title="A quadruped with the masses and lengths of the A1 learns to walk by random search, on hard ground",
    aliases=("bruedigam2023-fig13b",),
)
def figure13(context: Context) -> Result:
    """Algorithms 6 and 7: 100 episodes of 10 s at 0.001 s (10 of 2 s if quick), one seed; friction 0.8.

    The printed start of Algorithm 7 stands only with the parameters in the order frequency, thigh amplitude and middle,
    calf amplitude and middle, which is not that of Algorithm 6; it is taken so. Its ``rand`` is taken as uniform in
    +-1, and each trial is around the best parameters, as the text says.
    """
    count, duration = (10, 2.0) if context.quick else (100, 10.0)
    episodes, best = learn(count, duration, 0, context.progress)
    walk = _walk(_quadruped(), episodes[best].parameters, duration)
    rows = [_row(k, episode) for k, episode in enumerate(episodes)]
    return Result(_claims(episodes, duration), {"": rows}, {"": _figure(episodes, walk)})


def learn(count: int, duration: float, seed: int, progress: Any) -> tuple[list[_Episode], int]:
    """Algorithm 7: all episodes, the first of them standing, and which is the best."""
    rng = np.random.default_rng(seed)
    model = _quadruped()
    explore, bias = 0.1, np.zeros(5)
    episodes = [_episode(model, _STANDING, duration)]
    best = 0
    for k in range(1, count + 1):
        progress(f"episode {k}, best {episodes[best].distance:.2f} m")
        known = episodes[best].parameters
        if bias.any():
            trial = known + 0.002 * rng.uniform(-1, 1, 5) + 0.01 * bias
        else:
            trial = known + explore * rng.uniform(-1, 1, 5)
        episodes.append(_episode(model, trial, duration))
        if episodes[k].distance > episodes[best].distance:
            bias = (trial - known) / np.linalg.norm(trial - known)
            best, explore = k, 0.1
        else:
            bias, explore = np.zeros(5), 0.9 * explore
    return episodes, best


def _quadruped() -> Model:
    """``la.models.quadruped`` on the ground; its limits are data, and its motors are not bounded, as in the paper."""
    from leastaction import models

    m = models.quadruped()
    m.add_ground(friction=_FRICTION)
    return m.build()


def _places(model: Model) -> tuple[Any, Any, FloatArray]:
    """Places (4, 3) of hip, thigh and calf in q and v, and phases (4,) of the legs."""
    views = [[model.joints[f"{leg}_{part}_joint"] for part in ("hip", "thigh", "calf")] for leg in _LEGS]
    q, v = ([[getattr(view, name).start for view in leg] for leg in views] for name in "qv")
    return np.array(q), np.array(v), np.array(list(_LEGS.values()))


def _wanted(parameters: FloatArray, t: float, phases: FloatArray) -> FloatArray:
    """Angles (4, 3) that Algorithm 6 wants; the calves are a quarter of a turn behind the thighs."""
    b, a1, d1, a2, d2 = parameters
    angle = 20 * np.pi * t * b + phases
    return np.stack([0 * phases, a1 * np.cos(angle) + d1, a2 * np.cos(angle - np.pi / 2) + d2], axis=1)


def _walk(model: Model, parameters: FloatArray, duration: float) -> Trajectory:
    """One episode under Algorithm 6, from the wanted angles at t = 0 with the lowest foot just above the ground."""
    from leastaction.maximal.method import Maximal
    from leastaction.models.unitree_a1 import FOOT_RADIUS, LEG_LENGTH
    from leastaction.run.simulate import simulate

    q_places, v_places, phases = _places(model)

    def control(t: float, state: Any) -> FloatArray:
        out = np.zeros(model.nv)
        error = _wanted(parameters, t, phases) - state.q[q_places]
        out[v_places] = _PROPORTIONAL * error - _DERIVATIVE * state.v[v_places]
        return out

    q = model.neutral().copy()
    first = _wanted(parameters, 0.0, phases)
    q[q_places] = first
    reach = LEG_LENGTH * (np.cos(first[:, 1]) + np.cos(first[:, 1] + first[:, 2]))
    q[model.joints["root"].q.start + 2] = float(reach.max()) + FOOT_RADIUS + _ABOVE
    return simulate(
        model, model.state(q=q), dt=_DT, duration=duration, method=Maximal(), control=control, save_every=20,
        on_failure="keep",
    )  # fmt: skip


def _episode(model: Model, parameters: FloatArray, duration: float) -> _Episode:
    """Distance and depth of one episode; one that could not be finished counts what was walked."""
    from leastaction.models.unitree_a1 import FOOT_RADIUS

    run = _walk(model, parameters, duration)
    lowest = min(float(run.poses(f"{leg}_foot")[:, 2, 3].min()) for leg in _LEGS) - FOOT_RADIUS
    x = model.joints["root"].q.start
    return _Episode(parameters, float(run.q[-1, x] - run.q[0, x]), lowest, run.steps, run.report.failure or "")


def _row(k: int, episode: _Episode) -> dict[str, Any]:
    """One episode in numbers."""
    names = ("b", "a1", "d1", "a2", "d2")
    return {
        "episode": k,
        "distance (m)": episode.distance,
        "lowest foot (m)": episode.lowest,
        "steps": episode.steps,
        **{name: float(value) for name, value in zip(names, episode.parameters, strict=True)},
        "stopped": episode.failure,
    }


def _claims(episodes: list[_Episode], duration: float) -> list[Claim]:
    """Statements of the text on Fig. 13."""
    best = max(episode.distance for episode in episodes)
    stopped = [k for k, episode in enumerate(episodes) if episode.failure]
    lowest, stands = min(episode.lowest for episode in episodes), episodes[0].distance
    count = len(episodes) - 1
    whole = duration == 10.0
    return [
        Claim(
            f"it learns to walk more than 12 m in 10 s, in 100 episodes (here {count} of {duration:g} s): m",
            12,
            round(best, 2),
            best > 12 if whole else None,
        ),
        Claim(
            "average velocity of the best episode, m/s",
            1.2,
            round(best / duration, 2),
            best / duration >= 1.2 if whole else None,
        ),
        Claim("it makes progress: best over standing, m", "yes", round(best - stands, 2), best > stands + 0.05),
        Claim("rigid contacts: lowest point of a foot, m", "rigid", f"{lowest:.1e}", lowest > -1e-8),
        Claim(
            "every episode is simulated to its end: stopped",
            "not given",
            ", ".join(str(k) for k in stopped) or "none",
            not stopped,
        ),
    ]


def _figure(episodes: list[_Episode], walk: Trajectory) -> Any:
    """The best episode, and the progress."""
    from leastaction.plot import colour_of, styled

    distances = np.array([episode.distance for episode in episodes])

    def draw(figure: Any) -> None:
        a, b = figure.subplots(1, 2)
        trunk = walk.poses("trunk")[:, :3, 3]
        a.plot(trunk[:, 0], trunk[:, 2], label="trunk", **colour_of(0))
        for index, leg in enumerate(("FR", "FL")):
            foot = walk.poses(f"{leg}_foot")[:, :3, 3]
            a.plot(foot[:, 0], foot[:, 2], label=f"front foot {leg}", linewidth=0.8, **colour_of(index + 1))
        a.set(title="(a) the best episode: centres of bodies", xlabel="x  (m)", ylabel="z  (m)")
        a.legend(loc="center right")
        b.plot(distances, label="episode", **{**colour_of(1), "linestyle": "none", "marker": "o", "markersize": 3})
        b.plot(np.maximum.accumulate(distances), label="best so far", **colour_of(0))
        b.set(title="(b) learning to walk", xlabel="episode", ylabel="distance  (m)")
        b.legend(loc="upper left")

    return styled(draw, 10.5, 3.6)
