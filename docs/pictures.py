"""Makes the moving picture of the README: `python docs/pictures.py` (extra `video`, Chromium and ffmpeg)."""

import runpy
import subprocess
import tempfile
from pathlib import Path

import leastaction as la

HERE = Path(__file__).resolve().parent
FILM = {"size": (400, 320), "rate": 12, "charts": False}

# a linkage with closed loops, driven at its crank
m = la.models.strandbeest()
m.add_actuator("motor", "crank_hinge", kd=5.0)
legs = m.build()
walk = la.simulate(legs, la.project(legs, legs.state()), dt=0.005, duration=4.0, ctrl={"motor": 3.0})

with tempfile.TemporaryDirectory() as folder:
    # the quadruped of the examples, on the ground
    trot = runpy.run_path(str(HERE.parent / "examples" / "quadruped_trot.py"))["run"]
    walk.to_video(f"{folder}/walk.mp4", labels=["loops stay closed"], **FILM)
    trot.to_video(f"{folder}/trot.mp4", labels=["feet stay on the ground"], **FILM)
    # side by side, in few colours, which makes a small file
    side = "[0][1]hstack,split[a][b];[a]palettegen=max_colors=48[p];[b][p]paletteuse=dither=bayer:bayer_scale=4"
    words = ["ffmpeg", "-y", "-loglevel", "error", "-i", f"{folder}/walk.mp4", "-i", f"{folder}/trot.mp4"]
    picture = HERE / "_static" / "robots.gif"
    subprocess.run([*words, "-filter_complex", side, "-loop", "0", str(picture)], check=True)
print("wrote", picture)
