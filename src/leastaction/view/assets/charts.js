// Curves over time with a line at the present; what is still to come is pale.
"use strict";

class Chart {
  // curves: [{t, y, colour}]; log: sizes on a logarithmic axis.
  constructor(title, unit, curves, log) {
    this.curves = curves;
    this.log = log;
    this.figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = unit ? `${title} (${unit})` : title;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", caption.textContent);
    this.figure.append(caption, this.canvas);
    this.limits();
  }

  limits() {
    let first = Infinity, last = -Infinity, low = Infinity, high = -Infinity;
    for (const { t, y } of this.curves) {
      first = Math.min(first, t[0]);
      last = Math.max(last, t[t.length - 1]);
      for (const value of y) {
        const shown = this.log ? Math.abs(value) : value;
        if (!Number.isFinite(shown) || (this.log && shown <= 0)) continue;
        low = Math.min(low, shown);
        high = Math.max(high, shown);
      }
    }
    this.first = first;
    this.last = last > first ? last : first + 1;
    if (this.log) {
      // nothing above zero, or nothing but rounding below this
      this.empty = !(high > 0);
      const top = this.empty ? 1 : Math.ceil(Math.log10(Math.min(high, 1e12) * 1.2));
      this.high = top;
      this.low = Math.max(Math.min(Math.floor(Math.log10(low)), top - 2), top - 16, -17);
      if (this.empty) this.low = top - 2;
    } else {
      if (!(high >= low)) [low, high] = [-1, 1];
      const margin = 0.08 * (high - low) || Math.abs(high) * 0.1 || 1e-12;
      this.low = low - margin;
      this.high = high + margin;
    }
  }

  height(value) {
    const y = this.log ? Math.log10(Math.max(Math.abs(value), 1e-30)) : value;
    return this.top + (1 - (Math.max(Math.min(y, this.high), this.low - 0.2) - this.low) / (this.high - this.low)) * this.tall;
  }

  ticks() {
    if (this.log) {
      const step = Math.ceil((this.high - this.low) / 4), out = [];
      for (let k = this.high; k >= this.low; k -= step) out.push([Math.pow(10, k), `1e${k}`]);
      return out;
    }
    const step = round((this.high - this.low) / 3), out = [];
    for (let k = Math.ceil(this.low / step); k * step <= this.high; k++) out.push([k * step, engineering(k * step)]);
    return out;
  }

  draw(now) {
    const canvas = this.canvas, ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const c = canvas.getContext("2d"), left = 62, right = width - 12;
    this.top = 10;
    this.tall = height - 38;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    c.lineWidth = 1;
    c.textBaseline = "middle";
    // axes
    c.textAlign = "right";
    for (const [value, label] of this.ticks()) {
      const y = Math.round(this.height(value)) + 0.5;
      c.strokeStyle = "#e1e5ea";
      line(c, left, y, right, y);
      c.fillStyle = "#56606e";
      c.fillText(label, left - 7, y);
    }
    const across = (t) => left + ((t - this.first) / (this.last - this.first)) * (right - left);
    const step = round((this.last - this.first) / 4);
    for (let k = Math.ceil(this.first / step - 1e-9); k * step <= this.last * (1 + 1e-9); k++) {
      const x = across(k * step);
      c.textAlign = x > right - 14 ? "right" : "center";
      c.fillText(`${parseFloat((k * step).toPrecision(6))} s`, Math.min(x, right), height - 12);
    }
    if (this.log && this.empty) c.fillText("zero everywhere", (left + right) / 2, height / 2 - 10);
    // curves: pale whole, then full up to now
    for (const past of [false, true]) for (const { t, y, colour } of this.curves) {
      c.save();
      c.beginPath();
      c.rect(left, 0, (past && t.length > 1 ? across(now) : right) - left, height - 24);
      c.clip();
      c.globalAlpha = past ? 1 : 0.28;
      c.strokeStyle = colour;
      c.lineWidth = past ? 1.8 : 1.2;
      c.beginPath();
      let drawing = false;
      for (let i = 0; i < t.length && (!past || i === 0 || t[i - 1] <= now); i++) {
        if (!Number.isFinite(y[i]) || (this.log && y[i] === 0)) { drawing = false; continue; }
        const x = across(t[i]), level = this.height(y[i]);
        if (drawing) c.lineTo(x, level); else c.moveTo(x, level);
        drawing = true;
      }
      if (t.length === 1) c.arc(across(t[0]), this.height(y[0]), 2.5, 0, 7);
      c.stroke();
      c.restore();
    }
    // now
    c.strokeStyle = "#1d2330";
    line(c, across(now), this.top - 4, across(now), height - 26);
  }
}

// One, two or five times a power of ten, not below a number.
function round(rough) {
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  return power * ([1, 2, 5, 10].find((m) => m * power >= rough * 0.999) || 10);
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}
