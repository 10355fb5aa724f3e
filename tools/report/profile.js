// The charts of a profile: the roofline, and what each worker did.
function rooflineChart(profile) {
  const peaks = Object.entries(profile.peaks).filter(([, peak]) => peak > 0), slopes = profile.bandwidths.filter((it) => it.gbps > 0);
  const points = profile.kernels.map((kernel, index) => ({ kernel, index })).filter(({ kernel }) => kernel.flops > 0 && kernel.bytes > 0 && kernel.median > 0)
    .map(({ kernel, index }) => ({ kernel, index, intensity: kernel.flops / kernel.bytes, rate: kernel.flops / kernel.median * 1e-3 }));
  if (!peaks.length || !points.length) return null;
  const WIDTH = 1150, HEIGHT = 470, LEFT = 76, RIGHT = 150, TOP = 16, BOTTOM = 52, top = Math.max(...peaks.map(([, peak]) => peak));
  const down = (v) => Math.floor(Math.log10(v)), up = (v) => Math.ceil(Math.log10(v) + 0.02);
  const x0 = Math.min(-1, down(Math.min(...points.map((p) => p.intensity)))), x1 = Math.max(2, up(Math.max(...points.map((p) => p.intensity))));
  const y0 = Math.min(0, down(Math.min(...points.map((p) => p.rate)))), y1 = up(Math.max(top, ...points.map((p) => p.rate)));
  const x = (v) => LEFT + (WIDTH - LEFT - RIGHT) * (Math.log10(v) - x0) / (x1 - x0), y = (v) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (Math.log10(v) - y0) / (y1 - y0);
  const picture = svg("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "roofline" });
  const name = (v) => v >= 1 ? v.toLocaleString("en-US") : String(Number(v.toPrecision(1)));
  for (let e = x0; e <= x1; e++) picture.append(svg("path", { class: "grid", d: `M${x(10 ** e)} ${TOP}V${HEIGHT - BOTTOM}` }),
    svg("text", { class: "faint", x: x(10 ** e), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, name(10 ** e)));
  for (let e = y0; e <= y1; e++) picture.append(svg("path", { class: "grid", d: `M${LEFT} ${y(10 ** e)}H${WIDTH - RIGHT}` }),
    svg("text", { class: "faint", x: LEFT - 8, y: y(10 ** e) + 4, "text-anchor": "end" }, name(10 ** e)));
  // A bandwidth's roof ends at the highest peak, or at the edge of the chart.
  for (const { name: title, gbps } of slopes) {
    const from = Math.max(10 ** x0, 10 ** y0 / gbps), to = Math.min(top / gbps, 10 ** x1);
    if (to <= from) continue;
    const turn = -Math.atan2(y(gbps * from) - y(gbps * to), x(to) - x(from)) * 180 / Math.PI, at = from * (to / from) ** 0.04;
    picture.append(svg("path", { class: "roof second", d: `M${x(from)} ${y(gbps * from)}L${x(to)} ${y(gbps * to)}` }),
      svg("text", { class: "faint", transform: `translate(${x(at)} ${y(gbps * at) - 6}) rotate(${turn})` }, `${title} ${digits(gbps)} GB/s`));
  }
  for (const [title, peak] of peaks) {
    const from = Math.min(Math.max(10 ** x0, peak / Math.max(...slopes.map((it) => it.gbps), peak / 10 ** x1)), 10 ** x1);
    picture.append(svg("path", { class: "roof", d: `M${x(from)} ${y(peak)}H${WIDTH - RIGHT}` }),
      svg("text", { x: WIDTH - RIGHT + 8, y: y(peak) + 4 }, `${title}: ${digits(peak)} GFLOP/s`));
  }
  const whole = profile.kernels.reduce((sum, kernel) => sum + kernel.median, 0);
  for (const { kernel, rate, intensity } of points.sort((a, b) => b.kernel.median - a.kernel.median)) {
    const part = kernel.median / whole;
    picture.append(svg("circle", { class: "point", cx: x(intensity), cy: y(rate), r: 4 + 18 * Math.sqrt(part), style: `fill: ${hue(kernel.node)}` },
      told(`${kernel.node}\n${kernel.kernel}\n${digits(rate)} GFLOP/s, ${digits(intensity)} FLOP a byte\n${timeText(kernel.median)}, ${(100 * part).toFixed(1)}%`)));
  }
  // Names of the slowest, but none over another.
  const taken = [];
  for (const { kernel, rate, intensity } of points.slice(0, 12)) {
    const r = 4 + 18 * Math.sqrt(kernel.median / whole), right = x(intensity) > WIDTH - RIGHT - 130;
    const at = [x(intensity) + (right ? -r - 144 : r), y(rate)];
    if (taken.some(([left, top]) => Math.abs(left - at[0]) < 144 && Math.abs(top - at[1]) < 14)) continue;
    taken.push(at);
    picture.append(svg("text", { x: x(intensity) + (right ? -r - 4 : r + 4), y: y(rate) + 4, "text-anchor": right ? "end" : "start" }, cut(kernel.node, 20)));
  }
  picture.append(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    svg("text", { class: "faint", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, "operations for each byte moved (FLOP/B)"),
    svg("text", { class: "faint", transform: `translate(16 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, "GFLOP/s"));
  return picture;
}

// Kernels of one node that follow each other.
function grouped(profile, spans) {
  const groups = [];
  for (const [entry, begin, length] of spans) {
    const last = groups[groups.length - 1], node = entry < 0 ? null : profile.kernels[entry].node;
    if (last && node !== null && last.node === node) { last.end = begin + length; last.kernels.push([entry, begin, length]); }
    else groups.push({ node, begin, end: begin + length, kernels: entry < 0 ? [] : [[entry, begin, length]] });
  }
  return groups;
}

function flameChart(profile, zoom) {
  const spans = profile.spans;
  if (!spans.length || !spans.some((list) => list.length)) return null;
  const LEFT = 96, RIGHT = 14, TOP = 6, ROW = 24, LANE = 2 * ROW + 18, BOTTOM = 44, WIDTH = LEFT + RIGHT + 1040 * zoom;
  const last = Math.max(...spans.map((list) => list.length ? list[list.length - 1][1] + list[list.length - 1][2] : 0));
  const height = TOP + LANE * spans.length + BOTTOM, x = (us) => LEFT + (WIDTH - LEFT - RIGHT) * us / last;
  const picture = svg("svg", { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "time by worker" });
  for (const us of ticks(0, last, 10 * zoom))
    picture.append(svg("path", { class: "grid", d: `M${x(us)} ${TOP}V${height - BOTTOM}` }), svg("text", { class: "faint", x: x(us), y: height - BOTTOM + 18, "text-anchor": "middle" }, us === 0 ? "0" : timeText(us)));
  const block = (begin, end, top, style, text, tip) => {
    const width = Math.max(0.5, x(end) - x(begin)), letters = Math.floor((width - 6) / 7);
    return svg("g", {}, svg("rect", { x: x(begin), y: top, width, height: ROW - 2, rx: 2, ...style }),
      text && letters >= 3 ? svg("text", { x: x(begin) + 4, y: top + 15 }, cut(text, letters)) : null, told(tip));
  };
  spans.forEach((list, worker) => {
    const top = TOP + LANE * worker;
    picture.append(svg("text", { x: LEFT - 10, y: top + 27, "text-anchor": "end" }, `worker ${worker}`),
      list.length ? "" : svg("text", { class: "faint", x: LEFT + 8, y: top + 27 }, "not needed: the run has too little work to share"));
    for (const group of grouped(profile, list)) {
      const taken = timeText(group.end - group.begin);
      if (group.node === null) {
        picture.append(block(group.begin, group.end, top, { class: "wait" }, "", `waits ${taken}`));
        continue;
      }
      picture.append(block(group.begin, group.end, top, { style: `fill: ${hue(group.node)}; fill-opacity: 0.85` }, group.node, `${group.node}\n${taken}`));
      for (const [entry, begin, length] of group.kernels) {
        const kernel = profile.kernels[entry].kernel;
        picture.append(block(begin, begin + length, top + ROW, { style: `fill: ${hue(group.node)}; fill-opacity: 0.45` }, kernel, `${kernel}\n${timeText(length)}`));
      }
    }
  });
  picture.append(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${height - BOTTOM}H${WIDTH - RIGHT}` }),
    svg("text", { class: "faint", x: LEFT + 520, y: height - 6, "text-anchor": "middle" }, "time since the run began"));
  return picture;
}
