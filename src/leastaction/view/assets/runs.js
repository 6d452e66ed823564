// Runs: poses between saved pictures, and curves over time.
"use strict";

class Run {
  constructor(data) {
    Object.assign(this, data);
    this.t = decode(data.t);
    this.positions = decode(data.positions);
    this.rotations = decode(data.rotations);
    this.com = decode(data.com);
    this.contacts = decode(data.contacts);
    this.energy = data.energy && decode(data.energy);
    this.gap = data.gap && decode(data.gap);
    this.last = this.t[this.t.length - 1];
  }

  // Number of the last picture that is not later than t, and the share of the way to the next one.
  place(t) {
    const times = this.t;
    let low = 0, high = times.length - 1;
    if (high === 0 || t <= times[0]) return [0, 0];
    if (t >= times[high]) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    return [low, (t - times[low]) / (times[high] - times[low] || 1)];
  }

  mix(numbers, width, index, [row, share]) {
    const a = row * this.stride(width) + index * width, b = share > 0 ? a + this.stride(width) : a;
    const out = [];
    for (let k = 0; k < width; k++) out.push(numbers[a + k] * (1 - share) + numbers[b + k] * share);
    return out;
  }

  stride(width) { return this.bodies * width; }

  // Poses of all moving bodies at a time.
  poses(t) {
    const at = this.place(t), out = [];
    for (let i = 0; i < this.bodies; i++) {
      const q = this.mix(this.rotations, 4, i, at), n = Math.hypot(...q) || 1;
      out.push(Mat.pose(this.mix(this.positions, 3, i, at), q.map((x) => x / n)));
    }
    return out;
  }

  centre(t) {
    const [row, share] = this.place(t), a = 3 * row, b = share > 0 ? a + 3 : a;
    return [0, 1, 2].map((k) => this.com[a + k] * (1 - share) + this.com[b + k] * share);
  }

  // Points and arrows of the forces in the picture that is shown.
  touching(t) {
    const [row] = this.place(t), n = this.contactCount, out = [];
    for (let i = 0; i < n; i++) {
      const six = Array.from(this.contacts.subarray(6 * (row * n + i), 6 * (row * n + i) + 6));
      if (six.every(Number.isFinite)) out.push([six.slice(0, 3), six.slice(3)]);
    }
    return out;
  }

  // A point of a body in every picture.
  trace(body, point) {
    const out = [];
    for (let row = 0; row < this.t.length; row++) {
      const q = this.mix(this.rotations, 4, body, [row, 0]), n = Math.hypot(...q) || 1;
      out.push(Mat.at(Mat.pose(this.mix(this.positions, 3, body, [row, 0]), q.map((x) => x / n)), point));
    }
    return out;
  }
}

function engineering(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 0.01 && size < 1000 ? x.toPrecision(3) : x.toExponential(1);
}
