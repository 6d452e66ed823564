// The page: puts runs on the stage, moves time, answers buttons, slider, mouse and keys.
"use strict";

const RUN_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const byId = (id) => document.getElementById(id);

class Viewer {
  constructor() {
    this.renderer = new Renderer(byId("view"));
    this.time = 0;
    this.playing = true;
    this.frames = 0;
    this.runs = [];
    this.charts = [];
    this.listen();
    requestAnimationFrame((now) => this.tick(now));
  }

  // ------------------------------------------------------------------------------------------ what is shown
  show(data) {
    this.data = data;
    this.runs = data.runs.map((run) => new Run(run));
    this.geometries = data.geometries.map((geometry) => this.renderer.geometry(geometry));
    this.length = Math.max(...this.runs.map((run) => run.last));
    this.first = Math.min(...this.runs.map((run) => run.t[0]));
    this.traces = this.runs.map((run) => run.traces.map(([body, point]) => this.renderer.lineBuffer(run.trace(body, point))));
    this.camera = null;
    byId("title").textContent = document.title = data.title;
    byId("show-follow").checked = data.follow;
    byId("traces-label").hidden = !this.runs.some((run) => run.traces.length);
    byId("contacts-label").hidden = !this.runs.some((run) => run.contactCount);
    byId("slider").disabled = byId("play").disabled = !(this.length > this.first);
    byId("scale").textContent = data.ground === null ? "" : `grid ${parseFloat(data.spacing.toPrecision(3))} m`;
    const notes = data.notes.concat(this.length > this.first ? [] : ["The run has one row: there is nothing to play."]);
    byId("notes").replaceChildren(...notes.map((text) => element("li", text)));
    this.showLabels();
    this.showCharts();
    this.resetCamera();
    this.seek(this.first);
    this.playing = this.length > this.first;
  }

  showLabels() {
    const labels = byId("labels"), overlay = this.data.layout !== "side";
    labels.className = overlay ? "overlay" : "";
    labels.replaceChildren(...this.runs.map((run, k) => {
      const label = element("div", ""), mark = element("i", "");
      mark.style.background = RUN_COLOURS[k % RUN_COLOURS.length];
      label.append(mark, run.label);
      if (run.stopped) label.append(element("small", run.stopped));
      return label;
    }));
    if (this.runs.length === 1) labels.replaceChildren(...(this.runs[0].stopped ? labels.children : []));
  }

  showCharts() {
    const several = this.runs.length > 1, charts = [];
    const curves = (key) => this.runs.map((run, k) => ({ t: run.t, y: run[key], colour: RUN_COLOURS[k % RUN_COLOURS.length] })).filter((c) => c.y);
    const energy = curves("energy"), gap = curves("gap");
    if (energy.length) charts.push(several ? new Chart("Size of the energy change", "J", energy, true) : new Chart("Energy change", "J", energy, false));
    if (gap.length) charts.push(new Chart("Loop gap", "m or rad", gap, true));
    this.charts = charts;
    byId("charts").replaceChildren(...charts.map((chart) => chart.figure));
    // numbers of the present
    const head = ["run", "energy change now", "largest so far"].concat(gap.length ? ["loop gap now"] : [], ["computed in"]);
    const table = byId("numbers");
    table.hidden = !energy.length && !gap.length;
    const top = element("tr", "");
    top.append(...head.map((text) => element("th", text)));
    this.cells = this.runs.map((run, k) => {
      const row = element("tr", ""), cells = head.map(() => element("td", ""));
      const mark = element("b", "\u25a0 ");
      mark.style.color = RUN_COLOURS[k % RUN_COLOURS.length];
      cells[0].append(mark, run.label);
      row.append(...cells);
      return { row, cells };
    });
    table.replaceChildren(top, ...this.cells.map((entry) => entry.row));
  }

  showNumbers() {
    this.runs.forEach((run, k) => {
      const [row] = run.place(this.time), cells = this.cells[k].cells;
      if (run.energy) {
        let most = 0;
        for (let i = 0; i <= row; i++) most = Math.max(most, Math.abs(run.energy[i]));
        cells[1].textContent = `${engineering(run.energy[row])} J`;
        cells[2].textContent = `${engineering(most)} J`;
      }
      if (run.gap) cells[3].textContent = engineering(run.gap[row]);
      cells[cells.length - 1].textContent = `${engineering(run.wall)} s`;
    });
  }

  // ------------------------------------------------------------------------------------------ time
  seek(t) {
    this.time = Math.min(Math.max(t, this.first), this.length);
    const share = this.length > this.first ? (this.time - this.first) / (this.length - this.first) : 0;
    byId("slider").value = Math.round(1000 * share);
    byId("clock").textContent = `${this.time.toFixed(2)} of ${parseFloat(this.length.toPrecision(4))} s`;
    this.draw();
  }

  set playing(on) {
    this.moving = on;
    byId("play").textContent = on ? "Pause" : "Play";
  }

  get playing() { return this.moving; }

  tick(now) {
    const passed = Math.min((now - (this.before || now)) / 1000, 0.25);
    this.before = now;
    if (this.runs.length) {
      // at the end it begins again
      if (this.playing) this.seek(this.time >= this.length ? this.first : this.time + passed * this.speed());
      else if (this.stale()) this.draw();
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  speed() { return parseFloat(byId("speed").value); }

  stale() {
    const c = byId("view"), size = `${c.clientWidth} ${c.clientHeight}`, old = this.size;
    this.size = size;
    return old !== size;
  }

  // ------------------------------------------------------------------------------------------ camera
  resetCamera() {
    const { centre, radius, azimuth, elevation } = this.data.camera;
    this.camera = { target: centre.slice(), azimuth, elevation, radius };
  }

  eye(target, aspect) {
    const { azimuth, elevation, radius } = this.camera;
    const half = Math.min(FIELD / 2, Math.atan(Math.tan(FIELD / 2) * aspect)), far = radius / Math.sin(half);
    const out = [Math.cos(elevation) * Math.cos(azimuth), Math.cos(elevation) * Math.sin(azimuth), Math.sin(elevation)];
    return [Vec.add(target, Vec.mul(out, far)), far];
  }

  // ------------------------------------------------------------------------------------------ drawing
  draw() {
    if (!this.camera) return;
    const r = this.renderer, [width, height] = r.resize(), side = this.data.layout === "side";
    const views = side ? this.runs.map((run) => [run]) : [this.runs];
    const part = Math.floor(width / views.length);
    r.clear();
    views.forEach((runs, k) => {
      const target = this.target(runs[0]), [eye, far] = this.eye(target, part / height);
      r.begin(k * part, part, height, eye, target, far * 0.02, far * 12 + 60 * this.camera.radius);
      this.drawRuns(runs, target);
    });
    for (const chart of this.charts) chart.draw(this.time);
    this.showNumbers();
    this.frames++;
  }

  target(run) {
    if (!byId("show-follow").checked) return this.camera.target;
    return Vec.add(run.centre(this.time), Vec.sub(this.camera.target, this.data.camera.followed));
  }

  drawRuns(runs, target) {
    const r = this.renderer, ground = this.data.ground, surfaces = [];
    if (ground !== null) r.drawGround(ground, target, 14 * this.camera.radius + 2 * this.data.camera.radius, this.data.spacing);
    const placed = runs.map((run) => [run, run.poses(this.time)]);
    for (const [run, poses] of placed) surfaces.push(...this.surfaces(run, poses));
    if (ground !== null) r.drawShadows(surfaces, ground);
    r.drawSurfaces(surfaces);
    for (const [run, poses] of placed) this.drawExtras(run, poses);
  }

  // [geometry, pose, colour] of every item; in an overlay the runs behind the first are tinted and clear.
  surfaces(run, poses) {
    const number = this.runs.indexOf(run), tint = this.data.layout !== "side" && number > 0;
    const own = rgb(RUN_COLOURS[number % RUN_COLOURS.length]);
    return run.items.map((item) => {
      const fixed = Mat.pose(item.position, item.rotation);
      const paint = tint ? [...item.colour.slice(0, 3).map((x, i) => 0.25 * x + 0.75 * own[i]), 0.45] : item.colour;
      return [this.geometries[item.geometry], item.carrier < 0 ? fixed : Mat.mul(poses[item.carrier], fixed), paint];
    });
  }

  drawExtras(run, poses) {
    const r = this.renderer, number = this.runs.indexOf(run), own = rgb(RUN_COLOURS[number % RUN_COLOURS.length]);
    const size = this.data.camera.radius;
    if (byId("show-traces").checked) for (const trace of this.traces[number]) {
      r.drawLines(trace, [...own, 0.9], 2.2, run.place(this.time)[0]);
    }
    if (byId("show-frames").checked) [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((axis, k) => {
      const paint = [[0.84, 0.15, 0.15, 1], [0.10, 0.62, 0.20, 1], [0.13, 0.35, 0.88, 1]][k];
      const ends = poses.flatMap((pose) => [Mat.at(pose, [0, 0, 0]), Mat.at(pose, Vec.mul(axis, 0.16 * size))]);
      if (ends.length) r.drawPairs(ends, paint, 3);
    });
    const marks = [];
    if (byId("show-com").checked) marks.push([this.geometries[0], Mat.ball(run.centre(this.time), 0.035 * size), [0.05, 0.05, 0.06, 1]]);
    if (byId("show-contacts").checked) {
      for (const [point, force] of run.touching(this.time)) {
        marks.push([this.geometries[0], Mat.ball(point, 0.02 * size), [0.85, 0.1, 0.1, 1]]);
        r.drawPairs([point, Vec.add(point, force)], [0.85, 0.1, 0.1, 1], 4);
      }
    }
    if (marks.length) r.drawSurfaces(marks);
  }

  // ------------------------------------------------------------------------------------------ hands
  listen() {
    byId("play").addEventListener("click", () => { this.playing = !this.playing; });
    byId("reset").addEventListener("click", () => { this.resetCamera(); this.seek(this.first); });
    byId("slider").addEventListener("input", (event) => {
      this.playing = false;
      this.seek(this.first + (event.target.value / 1000) * (this.length - this.first));
    });
    for (const id of ["follow", "frames", "com", "traces", "contacts"]) byId(`show-${id}`).addEventListener("change", () => this.draw());
    document.addEventListener("keydown", (event) => {
      if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName)) return;
      const step = (this.length - this.first) / 100;
      if (event.key === " ") { this.playing = !this.playing; event.preventDefault(); }
      if (event.key === "ArrowRight") this.seek(this.time + step);
      if (event.key === "ArrowLeft") this.seek(this.time - step);
    });
    this.listenToMouse(byId("view"));
  }

  listenToMouse(canvas) {
    let held = null;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      held = [event.clientX, event.clientY, event.shiftKey || event.button === 2];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (!held || !this.camera) return;
      const dx = event.clientX - held[0], dy = event.clientY - held[1], camera = this.camera;
      held = [event.clientX, event.clientY, held[2]];
      if (held[2]) {
        const s = (3.2 * camera.radius) / canvas.clientHeight, a = camera.azimuth;
        camera.target = Vec.add(camera.target, [dx * s * Math.sin(a), -dx * s * Math.cos(a), dy * s]);
      } else {
        camera.azimuth -= dx * 0.008;
        camera.elevation = Math.min(Math.max(camera.elevation + dy * 0.008, -1.5), 1.5);
      }
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (!this.camera) return;
      this.camera.radius *= Math.exp(0.0012 * event.deltaY);
      this.draw();
    }, { passive: false });
  }
}

function element(tag, text) {
  const out = document.createElement(tag);
  out.textContent = text;
  return out;
}

function rgb(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255); }

function tell(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

// ------------------------------------------------------------------------------------------------ start
// A file carries its data; the page of the demo has choices and asks its own address for the data of each.
function start() {
  const data = JSON.parse(byId("data").textContent);
  let viewer;
  try {
    viewer = window.viewer = new Viewer();
  } catch (error) {
    tell(error.message);
    return;
  }
  if (data.runs) { viewer.show(data); return; }
  const choice = { mechanism: byId("mechanism"), method: byId("method") };
  byId("choices").hidden = false;
  byId("title").textContent = document.title;
  for (const [name, select] of Object.entries(choice)) {
    select.replaceChildren(...data[name].map(([value, text]) => Object.assign(element("option", text), { value })));
    select.addEventListener("change", () => {
      // each mechanism begins with the method that suits it
      if (select === choice.mechanism) choice.method.value = data.mechanism[select.selectedIndex][2];
      ask(viewer, choice);
    });
  }
  ask(viewer, choice);
}

let asked = 0;
async function ask(viewer, choice) {
  const number = ++asked;
  byId("busy").textContent = "simulating ...";
  try {
    const query = new URLSearchParams({ mechanism: choice.mechanism.value, method: choice.method.value });
    const answer = await fetch(`data?${query}`);
    const data = await answer.json();
    if (number !== asked) return;
    if (data.error) { tell(data.error); return; }
    tell("");
    viewer.show(data);
  } catch (error) {
    tell("The demo's program no longer answers; start it again with: leastaction demo");
  } finally {
    if (number === asked) byId("busy").textContent = "";
  }
}

start();
