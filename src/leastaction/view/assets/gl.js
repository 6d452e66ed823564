// Vectors, matrices and a small WebGL 2 renderer: lit surfaces, a grid on the ground, shadows on it, thick lines.
"use strict";

const Vec = {
  add: (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]],
  sub: (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]],
  mul: (a, s) => [a[0] * s, a[1] * s, a[2] * s],
  dot: (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
  cross: (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
  norm: (a) => Math.hypot(a[0], a[1], a[2]),
  unit: (a) => Vec.mul(a, 1 / (Vec.norm(a) || 1)),
};

// Matrices are 16 numbers, column after column, as WebGL takes them.
const Mat = {
  mul(a, b) {
    const c = new Float32Array(16);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) {
      let s = 0;
      for (let k = 0; k < 4; k++) s += a[4 * k + i] * b[4 * j + k];
      c[4 * j + i] = s;
    }
    return c;
  },
  // pose from a position and a quaternion (w, x, y, z)
  pose(p, q) {
    const [w, x, y, z] = q;
    return new Float32Array([
      1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
      2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
      2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0,
      p[0], p[1], p[2], 1]);
  },
  at: (m, p) => [0, 1, 2].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]),
  ball: (p, r) => new Float32Array([r, 0, 0, 0, 0, r, 0, 0, 0, 0, r, 0, p[0], p[1], p[2], 1]),
  look(eye, target) {
    const back = Vec.unit(Vec.sub(eye, target));
    const right = Vec.unit(Vec.cross([0, 0, 1], back));
    const up = Vec.cross(back, right);
    return new Float32Array([
      right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      -Vec.dot(right, eye), -Vec.dot(up, eye), -Vec.dot(back, eye), 1]);
  },
  perspective(angle, aspect, near, far) {
    const f = 1 / Math.tan(angle / 2);
    return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1,
      0, 0, (2 * far * near) / (near - far), 0]);
  },
};

const LIGHT = Vec.unit([0.35, -0.45, 0.82]);

const SURFACE_VERTEX = `#version 300 es
layout(location=0) in vec3 p; layout(location=1) in vec3 n;
uniform mat4 view, pose; uniform vec3 middle, half_size;
out vec3 normal, place;
void main() {
  vec4 world = pose * vec4(middle + half_size * p, 1.0);
  normal = mat3(pose) * n; place = world.xyz; gl_Position = view * world;
}`;

const SURFACE_FRAGMENT = `#version 300 es
precision highp float;
in vec3 normal, place; out vec4 colour;
uniform vec4 paint; uniform vec3 eye, light; uniform float lit;
void main() {
  if (lit < 0.5) { colour = paint; return; }
  vec3 n = normalize(normal), to_eye = normalize(eye - place);
  if (dot(n, to_eye) < 0.0) n = -n;
  vec3 base = pow(paint.rgb, vec3(2.2));
  float key = max(dot(n, light), 0.0), fill = max(dot(n, to_eye), 0.0);
  vec3 sky = mix(vec3(0.16, 0.15, 0.14), vec3(0.34, 0.37, 0.42), 0.5 + 0.5 * n.z);
  float shine = pow(max(dot(n, normalize(light + to_eye)), 0.0), 42.0);
  vec3 sum = base * (sky + 0.78 * key + 0.20 * fill) + vec3(0.14 * shine);
  colour = vec4(pow(sum, vec3(1.0 / 2.2)), paint.a);
}`;

const GROUND_VERTEX = `#version 300 es
layout(location=0) in vec2 p; uniform mat4 view; uniform vec3 centre; uniform float size; out vec2 place;
void main() { place = centre.xy + size * p; gl_Position = view * vec4(place, centre.z, 1.0); }`;

const GROUND_FRAGMENT = `#version 300 es
precision highp float;
in vec2 place; out vec4 colour; uniform float spacing, size; uniform vec3 centre;
float lines(vec2 x) {
  vec2 w = fwidth(x), d = abs(fract(x - 0.5) - 0.5) / max(w, vec2(1e-6));
  float thin = 1.0 - min(min(d.x, d.y), 1.0);
  return thin * clamp(0.6 / max(w.x, w.y) * 0.25, 0.0, 1.0);
}
void main() {
  float fade = 1.0 - smoothstep(0.25, 0.95, length(place - centre.xy) / size);
  float mark = max(0.30 * lines(place / spacing), 0.55 * lines(place / (5.0 * spacing)));
  vec3 plain = vec3(0.965, 0.970, 0.978);
  colour = vec4(mix(plain, vec3(0.45, 0.50, 0.57), mark), fade);
}`;

// A segment is two triangles whose corners are moved sideways by half the line's width in pixels.
const LINE_VERTEX = `#version 300 es
layout(location=0) in vec3 a; layout(location=1) in vec3 b; layout(location=2) in vec2 corner;
uniform mat4 view; uniform vec2 pixels; uniform float width;
void main() {
  vec4 p = view * vec4(a, 1.0), q = view * vec4(b, 1.0);
  p.w = max(p.w, 1e-4); q.w = max(q.w, 1e-4);
  vec2 along = (q.xy / q.w - p.xy / p.w) * pixels;
  along = length(along) > 1e-4 ? normalize(along) : vec2(1.0, 0.0);
  vec4 here = corner.x < 0.5 ? p : q;
  here.xy += vec2(-along.y, along.x) * corner.y * width / pixels * here.w;
  here.z -= 2e-4 * here.w; gl_Position = here;
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float; uniform vec4 paint; out vec4 colour; void main() { colour = paint; }`;

class Renderer {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true });
    if (!gl) throw new Error("This browser has no WebGL 2, which the moving picture needs.");
    this.gl = gl;
    this.surface = this.program(SURFACE_VERTEX, SURFACE_FRAGMENT);
    this.ground = this.program(GROUND_VERTEX, GROUND_FRAGMENT);
    this.line = this.program(LINE_VERTEX, LINE_FRAGMENT);
    this.square = this.array([[0, new Float32Array([-1, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1, 1]), 2]]);
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertex, fragment) {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    const places = {};
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(program, i).name;
      places[name] = gl.getUniformLocation(program, name);
    }
    return { program, places };
  }

  // A vertex array from [location, numbers, components] triples; whole numbers count from -1 to 1.
  array(parts, faces) {
    const gl = this.gl, vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    const buffers = [];
    for (const [location, numbers, size] of parts) {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.STATIC_DRAW);
      const kind = numbers instanceof Int16Array ? gl.SHORT : numbers instanceof Int8Array ? gl.BYTE : gl.FLOAT;
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, size, kind, kind !== gl.FLOAT, 0, 0);
      buffers.push(buffer);
    }
    if (faces) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    }
    gl.bindVertexArray(null);
    return { vao, buffers };
  }

  geometry(data) {
    const points = decode(data.points), normals = decode(data.normals), faces = decode(data.faces);
    const { vao } = this.array([[0, points, 3], [1, normals, 3]], faces);
    const kind = faces instanceof Uint16Array ? this.gl.UNSIGNED_SHORT : this.gl.UNSIGNED_INT;
    return { vao, count: faces.length, kind, middle: data.middle, half: data.half };
  }

  // Six corners for each segment of a list of points, taken two by two (pairs) or as one line.
  segments(points, pairs) {
    const count = pairs ? points.length / 2 : Math.max(points.length - 1, 0);
    const ends = new Float32Array(count * 6 * 8);
    let k = 0;
    for (let i = 0; i < count; i++) {
      const a = points[pairs ? 2 * i : i], b = points[pairs ? 2 * i + 1 : i + 1];
      for (const [end, side] of [[0, -1], [0, 1], [1, 1], [0, -1], [1, 1], [1, -1]]) {
        ends.set([a[0], a[1], a[2], b[0], b[1], b[2], end, side], k);
        k += 8;
      }
    }
    return { ends, count };
  }

  lineBuffer(points, pairs) {
    const gl = this.gl, { ends, count } = this.segments(points, pairs), vao = gl.createVertexArray();
    const buffer = gl.createBuffer();
    gl.bindVertexArray(vao);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, ends, gl.STATIC_DRAW);
    for (const [location, size, offset] of [[0, 3, 0], [1, 3, 12], [2, 2, 24]]) {
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, size, gl.FLOAT, false, 32, offset);
    }
    gl.bindVertexArray(null);
    return { vao, buffer, count };
  }

  // Make the drawing as large as the element; returns its size in pixels.
  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), c = this.canvas;
    const width = Math.max(1, Math.round(c.clientWidth * ratio)), height = Math.max(1, Math.round(c.clientHeight * ratio));
    if (c.width !== width || c.height !== height) { c.width = width; c.height = height; }
    return [width, height];
  }

  clear() {
    const gl = this.gl;
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0.914, 0.929, 0.949, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
  }

  // A part of the canvas, and the camera that looks at it.
  begin(x, width, height, eye, target, near, far) {
    const gl = this.gl;
    gl.viewport(x, 0, width, height);
    gl.scissor(x, 0, width, height);
    gl.enable(gl.SCISSOR_TEST);
    this.eye = eye;
    this.pixels = [width, height];
    this.view = Mat.mul(Mat.perspective(FIELD, width / height, near, far), Mat.look(eye, target));
  }

  drawGround(height, centre, size, spacing) {
    const gl = this.gl, u = this.ground.places;
    gl.useProgram(this.ground.program);
    gl.uniformMatrix4fv(u.view, false, this.view);
    gl.uniform3f(u.centre, centre[0], centre[1], height);
    gl.uniform1f(u.size, size);
    gl.uniform1f(u.spacing, spacing);
    gl.enable(gl.BLEND);
    gl.bindVertexArray(this.square.vao);
    gl.drawArrays(gl.TRIANGLES, 0, 6);
    gl.disable(gl.BLEND);
  }

  // A list of [geometry, pose, colour].
  drawSurfaces(list) {
    const gl = this.gl, u = this.surface.places;
    gl.useProgram(this.surface.program);
    gl.uniformMatrix4fv(u.view, false, this.view);
    gl.uniform3fv(u.eye, this.eye);
    gl.uniform3fv(u.light, LIGHT);
    gl.uniform1f(u.lit, 1);
    // what lets light through comes last and hides nothing
    for (const clear of [false, true]) {
      gl[clear ? "enable" : "disable"](gl.BLEND);
      gl.depthMask(!clear);
      for (const [geometry, pose, paint] of list) if (paint[3] < 1 === clear) this.drawOne(geometry, pose, paint);
    }
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  drawOne(geometry, pose, paint) {
    const gl = this.gl, u = this.surface.places;
    gl.uniformMatrix4fv(u.pose, false, pose);
    gl.uniform3fv(u.middle, geometry.middle);
    gl.uniform3fv(u.half_size, geometry.half);
    gl.uniform4fv(u.paint, paint);
    gl.bindVertexArray(geometry.vao);
    gl.drawElements(gl.TRIANGLES, geometry.count, geometry.kind, 0);
  }

  // The same surfaces pressed flat onto the ground along the light, each pixel darkened once.
  drawShadows(list, height) {
    const gl = this.gl, [lx, ly, lz] = LIGHT;
    const flat = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, -lx / lz, -ly / lz, 0, 0, (lx / lz) * height, (ly / lz) * height, height, 1]);
    gl.useProgram(this.surface.program);
    gl.uniformMatrix4fv(this.surface.places.view, false, this.view);
    gl.uniform1f(this.surface.places.lit, 0);
    gl.enable(gl.BLEND);
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(-1, -2);
    gl.depthMask(false);
    for (const [geometry, pose] of list) this.drawOne(geometry, Mat.mul(flat, pose), [0.12, 0.16, 0.22, 0.20]);
    gl.depthMask(true);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.disable(gl.STENCIL_TEST);
    gl.disable(gl.BLEND);
  }

  drawLines(buffer, paint, width, count) {
    const gl = this.gl, u = this.line.places, n = count === undefined ? buffer.count : count;
    if (n <= 0) return;
    gl.useProgram(this.line.program);
    gl.uniformMatrix4fv(u.view, false, this.view);
    gl.uniform2fv(u.pixels, this.pixels);
    gl.uniform1f(u.width, width);
    gl.uniform4fv(u.paint, paint);
    gl.enable(gl.BLEND);
    gl.bindVertexArray(buffer.vao);
    gl.drawArrays(gl.TRIANGLES, 0, 6 * n);
    gl.disable(gl.BLEND);
  }

  // Lines that are needed for this picture only.
  drawPairs(points, paint, width) {
    const buffer = this.lineBuffer(points, true);
    this.drawLines(buffer, paint, width);
    this.gl.deleteBuffer(buffer.buffer);
    this.gl.deleteVertexArray(buffer.vao);
  }
}

const FIELD = 0.61;

// Numbers from base64, with their kind in front.
function decode(text) {
  const [kind, code] = text.split(":");
  const bytes = Uint8Array.from(atob(code), (c) => c.charCodeAt(0));
  return new { f4: Float32Array, i2: Int16Array, i1: Int8Array, u2: Uint16Array, u4: Uint32Array }[kind](bytes.buffer);
}
