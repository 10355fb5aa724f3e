// The graph: steps in ranks by the longest path, coloured by their part of the time.
function graphChart(model, weights) {
  const BOX_W = 230, BOX_H = 40, GAP_X = 28, GAP_Y = 34, MARGIN = 16;
  const steps = model.steps, values = new Map(model.values.map((value) => [value.id, value]));
  const writer = new Map(), nodes = [], of = new Map();
  // Kernels of one node that follow each other are one box.
  steps.forEach((step, i) => {
    const last = nodes[nodes.length - 1];
    if (last && last.name === step.node) last.steps.push(i);
    else nodes.push({ name: step.node, op: step.op, steps: [i], before: new Set(), after: new Set(), rank: 0 });
    of.set(i, nodes.length - 1);
  });
  const ends = [];
  const end = (id, where) => {
    let found = ends.findIndex((it) => it.id === id && it.where === where);
    if (found < 0) found = ends.push({ id, where, links: new Set() }) - 1;
    return ends[found];
  };
  steps.forEach((step, i) => {
    const node = of.get(i);
    for (const id of step.reads) {
      const value = values.get(id);
      if (value.where === "weights") continue;
      if (writer.has(id) && writer.get(id) !== node) { nodes[node].before.add(writer.get(id)); nodes[writer.get(id)].after.add(node); }
      if (!writer.has(id) && (value.where === "input" || value.first === 0)) end(id, "input").links.add(node);
    }
    for (const id of step.writes) {
      writer.set(id, node);
      if (values.get(id).where === "output" || values.get(id).last === model.end) end(id, "output").links.add(node);
    }
  });
  nodes.forEach((node) => { for (const before of node.before) node.rank = Math.max(node.rank, nodes[before].rank + 1); });
  const ranks = [];
  nodes.forEach((node, i) => (ranks[node.rank] ||= []).push(i));
  // Beside each other in the order of what they read.
  for (const rank of ranks) {
    const place = (i) => { const list = [...nodes[i].before]; return list.length ? list.reduce((sum, b) => sum + (nodes[b].column || 0), 0) / list.length : 0; };
    rank.sort((a, b) => place(a) - place(b) || a - b).forEach((i, column) => { nodes[i].column = column - (rank.length - 1) / 2; });
  }
  const widest = Math.max(1, ...ranks.map((rank) => rank.length)), few = Math.max(widest, 3);
  const width = 2 * MARGIN + few * (BOX_W + GAP_X), height = 2 * MARGIN + (ranks.length + 2) * (BOX_H + GAP_Y) - GAP_Y;
  const x = (node) => width / 2 + node.column * (BOX_W + GAP_X), y = (rank) => MARGIN + (rank + 1) * (BOX_H + GAP_Y);
  const timeOf = (node) => node.steps.reduce((sum, i) => sum + weights[i], 0);
  const all = weights.reduce((sum, w) => sum + w, 0), most = Math.max(...nodes.map(timeOf), 0);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "the graph" });
  const line = (x0, y0, x1, y1, text) => svg("path", { class: "edge", "marker-end": "url(#arrow)",
    d: `M${x0} ${y0}C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}` }, told(text));
  picture.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", fill: "var(--faint)" }))));
  const shape = (value) => `${value.type}[${value.shape.join(", ")}]${value.block ? `, blocks of ${value.block} channels` : ""}`;
  nodes.forEach((node) => {
    for (const before of node.before) {
      const from = nodes[before];
      picture.append(line(x(from), y(from.rank) + BOX_H, x(node), y(node.rank), `${from.name} → ${node.name}`));
    }
  });
  const places = { input: 0, output: 0 }, counts = { input: 0, output: 0 };
  ends.forEach((it) => counts[it.where]++);
  for (const it of ends) {
    const value = values.get(it.id), at = width / 2 + (places[it.where]++ - (counts[it.where] - 1) / 2) * (BOX_W + GAP_X);
    const top = it.where === "input" ? MARGIN : y(ranks.length);
    for (const link of it.links) {
      const node = nodes[link];
      picture.append(it.where === "input" ? line(at, top + BOX_H - 8, x(node), y(node.rank), value.name) : line(x(node), y(node.rank) + BOX_H, at, top, value.name));
    }
    picture.append(svg("g", {}, svg("rect", { class: "end", x: at - BOX_W / 2, y: top, width: BOX_W, height: BOX_H - 8, rx: 16 }),
      svg("text", { x: at, y: top + 20, "text-anchor": "middle" }, cut(value.name, 28)), told(`${value.name}: ${shape(value)}`)));
  }
  for (const node of nodes) {
    const time = timeOf(node), part = most > 0 ? time / most : 0, left = x(node) - BOX_W / 2, top = y(node.rank);
    const first = steps[node.steps[0]], light = part > 0.55 ? "light" : "";
    const fused = [...(first.before || []), ...(first.chain || []), ...(first.after || []),
      ...(first.reduction ? [first.reduction] : []), ...(first.pool ? [first.pool] : [])];
    const lines = [`${node.name}: ${[node.op, ...fused].join(" + ")}`, `${timeText(time)}, ${(all > 0 ? 100 * time / all : 0).toFixed(1)}%`,
      ...node.steps.map((i) => steps[i].kernel + (steps[i].schedule ? " " + steps[i].schedule : "")),
      ...first.writes.map((id) => `writes ${values.get(id).name}: ${shape(values.get(id))}`)];
    picture.append(svg("g", { class: "node" },
      svg("rect", { class: "box", x: left, y: top, width: BOX_W, height: BOX_H, rx: 6, style: `fill: ${heat(part)}` }),
      svg("text", { class: `title ${light}`, x: left + 10, y: top + 17 }, cut([node.op, ...fused].join(" + "), 30)),
      svg("text", { class: light || "faint", x: left + 10, y: top + 32 }, cut(node.name, 22)),
      svg("text", { class: light || "faint", x: left + BOX_W - 10, y: top + 32, "text-anchor": "end" }, timeText(time)),
      told(lines.join("\n"))));
  }
  return picture;
}

// The memory plan: values of the arena over the steps in which they are live.
function memoryChart(model) {
  const values = model.values.filter((value) => value.where === "arena");
  if (!values.length || !model.arena) return null;
  const WIDTH = 1150, HEIGHT = 420, LEFT = 80, RIGHT = 14, TOP = 10, BOTTOM = 44;
  const steps = Math.max(1, model.end + 1), x = (step) => LEFT + (WIDTH - LEFT - RIGHT) * step / steps;
  const y = (at) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * at / model.arena;
  const picture = svg("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "the memory plan" });
  for (const at of ticks(0, model.arena, 6))
    picture.append(svg("path", { class: "grid", d: `M${LEFT} ${y(at)}H${WIDTH - RIGHT}` }),
      svg("text", { class: "faint", x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, bytesText(at)));
  for (const step of ticks(0, steps, 12))
    if (Number.isInteger(step)) picture.append(svg("text", { class: "faint", x: x(step), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(step)));
  for (const value of values) {
    const width = x(Math.min(value.last, model.end) + 1) - x(value.first), height = y(value.at) - y(value.at + value.bytes);
    picture.append(svg("g", {}, svg("rect", { class: "box", x: x(value.first), y: y(value.at + value.bytes), width, height, style: `fill: ${hue(value.name)}; fill-opacity: 0.75` }),
      width > 60 && height > 14 ? svg("text", { x: x(value.first) + 5, y: y(value.at + value.bytes / 2) + 4 }, cut(value.name, Math.floor(width / 8))) : null,
      told(`${value.name}: ${bytesText(value.bytes)} from ${value.at.toLocaleString("en-US")} on\nsteps ${value.first} to ${value.last}`)));
  }
  picture.append(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    svg("text", { class: "faint", x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "step of the schedule"));
  return picture;
}
