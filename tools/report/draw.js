"use strict";
// What all charts use: elements, numbers as people read them, colours, axes.
const data = JSON.parse(document.getElementById("data").textContent);

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const told = (text) => svg("title", {}, text);

// Three digits: "1.23", "12.3", "123", "1,230".
function digits(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1000) return Math.round(x).toLocaleString("en-US");
  return size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : size >= 0.01 ? x.toFixed(2) : x.toExponential(1);
}

function scaled(x, step, units) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(x) >= step) { x /= step; unit++; }
  return digits(x) + " " + units[unit];
}
const bytesText = (n) => n < 1000 ? n + " B" : scaled(n, 1000, ["B", "kB", "MB", "GB", "TB"]);
const flopsText = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
const timeText = (us) => us >= 1e6 ? digits(us / 1e6) + " s" : us >= 1000 ? digits(us / 1000) + " ms" : us >= 0.1 || us === 0 ? digits(us) + " µs" : digits(us * 1000) + " ns";

const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

// From cold to hot, by the part of the largest.
const heat = (part) => `color-mix(in oklab, var(--hot) ${(100 * Math.max(0, Math.min(1, part))).toFixed(1)}%, var(--cold))`;

// One colour for each name, always the same, and one that can be told from its neighbours.
function hue(name) {
  let hash = 2166136261;
  for (const c of name) hash = Math.imul(hash ^ c.codePointAt(0), 16777619) >>> 0;
  return `hsl(${hash % 360} 52% 54%)`;
}

// 1, 2 or 5 times a power of ten.
function niceStep(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function ticks(from, to, most) {
  const step = niceStep(to - from || 1, most), list = [];
  for (let i = Math.ceil(from / step); i * step <= to * (1 + 1e-12); i++) list.push(i * step);
  return list;
}

// A section of the page; nothing where there is nothing to draw.
function fill(id, drawing) {
  const place = document.getElementById(id);
  if (place && drawing) place.append(drawing);
}
