"use strict";

const LEFT = 60;
const LANE_HEIGHT = 26;
const MOST_LABELS = 60;
const CHART_HEIGHT = 150;
const EVENTS_SHOWN = 40;
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const flowColour = (number) => colour(`c${number % 8}`);
const counted = (number, noun, several = `${noun}s`) => `${cycles(number)} ${number === 1 ? noun : several}`;
const OF_A_LIVE_ONE = 250_000;
const cycles = (number) => Math.round(number).toLocaleString("en");

let run = null;
let extent = [0, 1];
let now = 0;
let chosen = [];
let packet = null;
let lanes = [];
let charts = [];
let nodes = [];
let links = [];
let asked = 0;
let drawn = 0;

const isMoving = () => run !== null && (run.events > 0 || run.live !== undefined);

async function ask(path, given = {}) {
  const response = await fetch(`${path}?${new URLSearchParams(given)}`);
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

// For those who look from outside whether all is there.
function ready() {
  document.body.dataset.ready = ++drawn;
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function row(cells) {
  const made = document.createElement("tr");
  for (const cell of cells) {
    const td = document.createElement("td");
    if (cell instanceof Node) td.append(cell);
    else td.textContent = cell;
    made.append(td);
  }
  return made;
}

// The map ----------------------------------------------------------------------------------------------------

let box = [0, 0, 1, 1];

function showBox() {
  $("map").setAttribute("viewBox", box.join(" "));
}

// Of the box of a switch, on a map whose names are so many times as large as on a small one.
function boxSize(node, scale) {
  return [Math.max(44, 9 * node.text.length + 14) * scale, 28 * scale];
}

// Where nodes of one height are nearer than their boxes are wide, every second (third, ...) stands higher.
function stagger(switches, scale) {
  const rows = Map.groupBy(switches, (node) => node.y);
  for (const row of rows.values()) {
    row.sort((a, b) => a.x - b.x);
    const shares = row.slice(1).map((node, i) => (boxSize(node, scale)[0] + boxSize(row[i], scale)[0]) / 2 / (node.x - row[i].x));
    const levels = Math.ceil(Math.max(...shares, 1));
    row.forEach((node, i) => { node.y -= (i % levels) * 40 * scale; });
  }
}

function namesMeet(hosts) {
  return hosts.some((a, i) => hosts.some((b, j) =>
    i < j && Math.abs(a.y - b.y) < 16 && Math.abs(a.x - b.x) < 4.5 * (a.text.length + b.text.length)));
}

function drawMap() {
  const map = $("map");
  map.replaceChildren();
  const xs = run.nodes.map((node) => node.x);
  // So that the names of switches are readable on a wide map.
  const scale = Math.min(2.2, Math.max(1, (Math.max(...xs) - Math.min(...xs) + 120) / 1300));
  stagger(run.nodes.filter((node) => node.kind === "switch"), scale);
  const ys = run.nodes.map((node) => node.y);
  const [left, top] = [Math.min(...xs) - 60, Math.min(...ys) - 50];
  box = [left, top, Math.max(...xs) + 60 - left, Math.max(...ys) + 50 - top];
  showBox();
  const pairs = new Map();
  links = run.links.map((link) => {
    const [a, b] = [run.nodes[link.a[0]], run.nodes[link.b[0]]];
    const pair = [link.a[0], link.b[0]].sort((x, y) => x - y).join();
    const before = pairs.get(pair) ?? 0;
    pairs.set(pair, before + 1);
    // Parallel links bend away from each other.
    const bend = (before % 2 ? 1 : -1) * Math.ceil(before / 2) * 24;
    const [mx, my] = [(a.x + b.x) / 2 + (a.y === b.y ? 0 : bend), (a.y + b.y) / 2 + (a.y === b.y ? bend : 0)];
    const line = element("path", {
      class: `link ${link.width === "1X" ? "narrow" : ""}`, d: `M${a.x} ${a.y} Q${mx} ${my} ${b.x} ${b.y}`,
    });
    line.append(element("title", {}, linkText(link)));
    map.append(line);
    return line;
  });
  const hosts = run.nodes.filter((node) => node.kind === "host");
  const many = hosts.length > MOST_LABELS, named = !many && !namesMeet(hosts);
  map.classList.toggle("many", many);
  nodes = run.nodes.map((node, number) => {
    const group = element("g", {
      class: `node ${node.kind}`, tabindex: number ? -1 : 0, role: "button", "aria-label": `${node.kind} ${node.text}`,
    });
    const big = node.kind === "switch";
    const [w, h] = big ? boxSize(node, scale) : [16, 16];
    group.append(element("rect", {
      class: "shape", x: node.x - w / 2, y: node.y - h / 2, width: w, height: h, rx: big ? 4 : 8,
    }));
    group.append(element("title", {}, nodeText(node)));
    if (big) group.append(element("text", { x: node.x, y: node.y + 5 * scale, "font-size": 14 * scale }, node.text));
    else if (named) group.append(element("text", { x: node.x, y: node.y + 24, "font-size": 13 }, node.text));
    group.addEventListener("click", () => choose(number));
    group.addEventListener("focus", () => { $("place").textContent = nodeText(node); });
    map.append(group);
    return group;
  });
  $("place").textContent = named ? "" : "Point at a node to read its name; the wheel zooms, arrow keys go from node to node.";
}

function nodeText(node) {
  return `${node.kind} ${node.text}: ${counted(node.ports, "port")}, ${counted(node.vls, "VL")}, MTU ${node.mtu}, ` +
    `${counted(node.blocks, "block")} of buffer a port`;
}

function linkText(link) {
  const [a, b] = [link.a, link.b].map(([node, port]) => `${run.nodes[node].text}[${port}]`);
  return `${a} - ${b}: ${link.width}, ${counted(link.flight, "cycle")} of flight`;
}

function portsOf(number) {
  return run.links.flatMap((link, index) => [
    ...(link.a[0] === number ? [2 * index] : []), ...(link.b[0] === number ? [2 * index + 1] : []),
  ]);
}

function choose(number) {
  const own = number === null ? [] : portsOf(number);
  // What comes from the other side is in the same buffers.
  chosen = own.slice(0, 8);
  nodes.forEach((group, index) => group.classList.toggle("chosen", index === number));
  links.forEach((line, index) => line.classList.toggle("beside", own.some((port) => port >> 1 === index)));
  if (number !== null) {
    $("place").textContent = nodeText(run.nodes[number]);
    nodes[number].focus();
  }
  if (isMoving()) refresh();
}

function nextNode(from, dx, dy) {
  const here = run.nodes[from];
  let best = null;
  run.nodes.forEach((node, number) => {
    const along = (node.x - here.x) * dx + (node.y - here.y) * dy;
    const across = Math.abs((node.x - here.x) * dy) + Math.abs((node.y - here.y) * dx);
    if (along > 0.5 && (best === null || along + 2 * across < best[0])) best = [along + 2 * across, number];
  });
  if (best) nodes[best[1]].focus();
}

async function showLoad() {
  const answer = await ask("load.json", { from: extent[0], to: Math.max(now, extent[0] + 1) });
  links.forEach((line, index) => {
    const load = Math.max(answer.load[2 * index], answer.load[2 * index + 1]);
    const states = [answer.states[2 * index], answer.states[2 * index + 1]];
    const isActive = states.every((state) => !state || state === "Active");
    line.style.stroke = isActive && load > 0.005 ? `color-mix(in srgb, ${colour("c0")} ${30 + 70 * load}%, ${colour("grid")})` : "";
    line.style.strokeWidth = `${1 + 6 * load}px`;
    line.classList.toggle("down", states.some((state) => state === "Down"));
    line.classList.toggle("inactive", !isActive);
    const both = [0, 1].map((end) => `${Math.round(100 * answer.load[2 * index + end])} %`);
    line.firstChild.textContent = `${linkText(run.links[index])}; ${states.join(" - ")}; busy ${both[0]} one way, ${both[1]} back`;
  });
  const waiting = new Set(answer.waits.map((port) => {
    const link = run.links[port >> 1];
    return port % 2 ? link.b[0] : link.a[0];
  }));
  nodes.forEach((group, index) => group.classList.toggle("waits", waiting.has(index)));
}

// Over time --------------------------------------------------------------------------------------------------

function chart(place, answer) {
  const holder = $(place);
  holder.replaceChildren();
  const grid = { stroke: colour("grid"), width: 1 };
  const axis = { stroke: colour("ink"), grid, ticks: grid };
  const several = new Set(answer.lines.map((line) => line.vl)).size > 1;
  const made = new uPlot({
    width: holder.clientWidth,
    height: CHART_HEIGHT,
    padding: [8, 0, 0, 0],
    scales: { x: { time: false, range: () => extent }, y: { range: (plot, low, high) => [0, Math.max(1, high * 1.1)] } },
    cursor: { sync: { key: "cycle" }, drag: { x: true, y: false } },
    axes: [
      { ...axis, space: 90, values: (plot, ticks) => ticks.map(cycles) },
      { ...axis, size: LEFT },
    ],
    series: [
      { label: "cycle", value: (plot, value) => (value === null ? "" : cycles(value)) },
      ...answer.lines.map((line, number) => ({
        label: run.port_names[line.port] + (several && line.vl >= 0 ? `, VL ${line.vl}` : ""),
        stroke: flowColour(number),
        width: 2,
        points: { show: false },
        paths: uPlot.paths.stepped({ align: 1 }),
      })),
    ],
    hooks: {
      setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width > 3) zoomTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
      }],
      draw: [(plot) => {
        const at = plot.valToPos(now, "x", true);
        plot.ctx.fillStyle = colour("chosen");
        plot.ctx.fillRect(at, plot.bbox.top, 2, plot.bbox.height);
      }],
    },
  }, [answer.x, ...answer.lines.map((line) => line.y)], holder);
  made.over.addEventListener("click", (event) => scrub(made.posToVal(event.offsetX, "x")));
  return made;
}

function drawLanes() {
  const canvas = $("lanes"), width = canvas.clientWidth, height = LANE_HEIGHT * Math.max(1, lanes.length);
  const scale = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = '12px "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  const x = (cycle) => LEFT + (Math.min(Math.max(cycle, extent[0]), extent[1]) - extent[0]) / (extent[1] - extent[0]) * (width - LEFT);
  lanes.forEach((lane, number) => {
    const top = number * LANE_HEIGHT + 3, tall = LANE_HEIGHT - 8;
    context.fillStyle = colour("ink");
    context.textAlign = "left";
    context.fillText(run.port_names[lane.port], 0, top + tall / 2, LEFT - 4);
    const several = run.flows.length > 1;
    for (const [begin, end, own, name, flow] of lane.packets.bars ?? []) {
      const [from, to] = [x(begin), x(end)];
      context.fillStyle = flowColour(several ? flow : Number.parseInt(name) || 0);
      context.fillRect(from, top, Math.max(1, to - from - 1), tall);
      if (own === packet) {
        context.strokeStyle = colour("ink");
        context.lineWidth = 2;
        context.strokeRect(from, top, Math.max(2, to - from - 1), tall);
      }
      if (to - from > 8 * name.length + 4) {
        context.fillStyle = colour("paper");
        context.textAlign = "center";
        context.fillText(name, (from + to) / 2, top + tall / 2 + 1);
      }
    }
    (lane.packets.busy ?? []).forEach((share, bucket) => {
      const [from, to] = [x(lane.packets.edges[bucket]), x(lane.packets.edges[bucket + 1])];
      context.fillStyle = colour("c0");
      context.fillRect(from, top + tall * (1 - share), Math.max(1, to - from), tall * share);
    });
    context.strokeStyle = context.fillStyle = colour("stall");
    context.lineWidth = 1;
    for (const [begin, end] of lane.waits.bars ?? []) hatch(context, x(begin), x(end), top, tall);
    (lane.waits.busy ?? []).forEach((share, bucket) => {
      const [from, to] = [x(lane.waits.edges[bucket]), x(lane.waits.edges[bucket + 1])];
      context.fillRect(from, top + tall - 1, Math.max(1, to - from), 3 * share);
    });
    for (const [cycle, kind] of lane.marks) {
      context.fillStyle = colour(kind === "deliver" ? "ink" : "stall");
      context.fillRect(x(cycle) - 1, top - 2, 3, 5);
    }
  });
  context.fillStyle = colour("chosen");
  context.fillRect(x(now), 0, 2, height);
}

function hatch(context, from, to, top, tall) {
  context.save();
  context.beginPath();
  context.rect(from, top, to - from, tall);
  context.clip();
  context.beginPath();
  for (let at = from - tall; at < to; at += 6) {
    context.moveTo(at, top + tall);
    context.lineTo(at + tall, top);
  }
  context.stroke();
  context.restore();
}

async function refresh() {
  const own = ++asked;
  const pixels = Math.max(100, Math.min(2000, Math.round($("lanes").clientWidth - LEFT)));
  const answer = await ask("series.json", { from: extent[0], to: extent[1], pixels, ports: chosen.join() });
  // A later question has been asked meanwhile.
  if (own !== asked) return;
  lanes = answer.lanes;
  charts.forEach((plot) => plot.destroy());
  charts = [chart("credits", answer.credits), chart("buffers", answer.buffers)];
  $("scrub").min = extent[0];
  $("scrub").max = extent[1] - 1;
  await scrub(now);
}

function since() {
  const micros = (from) => ((now - from) * run.symbol_time_ns / 1000).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return run.live === undefined ? `${micros(run.start)} µs since traffic may start` : `${micros(0)} µs since the fabric began`;
}

async function scrub(cycle) {
  now = Math.round(Math.min(Math.max(cycle, extent[0]), extent[1] - 1));
  $("scrub").value = now;
  $("now").textContent = `${cycles(now)}, ${since()}`;
  drawLanes();
  charts.forEach((plot) => plot.redraw(false));
  const at = now;
  const [told] = await Promise.all([ask("events.json", { from: at, count: EVENTS_SHOWN, ports: chosen.join() }), showLoad()]);
  if (at !== now) return;
  $("events").replaceChildren(...told.map((event) => {
    let what = event.text;
    if (event.packet !== null) {
      what = document.createElement("button");
      what.textContent = event.text;
      what.addEventListener("click", () => showPacket(event.packet));
    }
    return row([cycles(event.cycle), event.place, event.credits ?? "", what]);
  }));
  ready();
}

function zoomTo(first, last) {
  const least = 20, whole = [run.live === undefined ? Math.min(run.begin, run.first) : run.begin, run.last];
  const wide = Math.min(Math.max(last - first, least), whole[1] - whole[0]);
  const begin = Math.round(Math.min(Math.max(first, whole[0]), whole[1] - wide));
  extent = [begin, Math.round(begin + wide)];
  return refresh();
}

function zoom(factor) {
  const wide = (extent[1] - extent[0]) * factor;
  const share = (now - extent[0]) / (extent[1] - extent[0]);
  return zoomTo(now - share * wide, now + (1 - share) * wide);
}

// A packet's way ---------------------------------------------------------------------------------------------

async function showPacket(number) {
  if (number === null || number === undefined) return;
  const way = await ask("packet.json", { number });
  packet = number;
  $("packet-name").textContent = `The way of ${way.name}`;
  $("packet").dataset.before = way.before ?? "";
  $("packet").dataset.after = way.after ?? "";
  $("spans").replaceChildren(...way.spans.map((span) =>
    row([cycles(span.from), cycles(span.to - span.from), run.nodes[span.node].text, span.text])));
  if (way.spans.length) {
    const whole = way.spans.at(-1).to - way.spans[0].from;
    $("spans").append(row(["", cycles(whole), "", `in all, ${cycles(whole * run.symbol_time_ns)} ns`]));
  }
  drawLadder(way);
  drawLanes();
}

function drawLadder(way) {
  const ladder = $("ladder"), width = ladder.clientWidth, height = ladder.clientHeight;
  ladder.replaceChildren();
  ladder.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (!way.spans.length) return;
  const [first, last] = [way.spans[0].from, Math.max(way.spans.at(-1).to, way.hops.at(-1)?.last_in ?? 0)];
  const y = (cycle) => 34 + (cycle - first) / Math.max(1, last - first) * (height - 50);
  const x = (column) => 90 + column * (width - 130) / Math.max(1, way.columns.length - 1);
  way.columns.forEach((node, column) => {
    ladder.append(element("line", { x1: x(column), x2: x(column), y1: 26, y2: height - 8, stroke: colour("dim") }));
    ladder.append(element("text", { x: x(column), y: 18, "text-anchor": "middle" }, run.nodes[node].text));
  });
  way.hops.forEach((hop, column) => {
    const points = [[x(column), hop.first], [x(column + 1), hop.first_in], [x(column + 1), hop.last_in], [x(column), hop.last]];
    ladder.append(element("polygon", {
      points: points.map(([at, cycle]) => `${at},${y(cycle)}`).join(" "), fill: flowColour(0), opacity: 0.75,
    }));
  });
  let column = 0, label = -20;
  for (const span of way.spans) {
    while (way.columns[column] !== span.node && column + 1 < way.columns.length) column += 1;
    if (span.kind === "credits" || span.kind === "queue") {
      ladder.append(element("line", {
        x1: x(column), x2: x(column), y1: y(span.from), y2: y(span.to),
        stroke: colour(span.kind === "credits" ? "stall" : "chosen"), "stroke-width": 7,
      }));
    }
    if (y(span.from) - label >= 13) {
      label = y(span.from);
      ladder.append(element("text", { x: 4, y: label + 4 }, cycles(span.from)));
    }
  }
}

// What people do ---------------------------------------------------------------------------------------------

$("scrub").addEventListener("input", (event) => scrub(Number(event.target.value)));
$("lanes").addEventListener("click", (event) => {
  const cycle = extent[0] + (event.offsetX - LEFT) / ($("lanes").clientWidth - LEFT) * (extent[1] - extent[0]);
  const lane = lanes[Math.floor(event.offsetY / LANE_HEIGHT)];
  const bar = lane?.packets.bars?.find(([begin, end]) => begin <= cycle && cycle < end);
  scrub(cycle);
  if (bar && bar[2] >= 0) showPacket(bar[2]);
});
$("map").addEventListener("wheel", (event) => {
  event.preventDefault();
  const factor = event.deltaY > 0 ? 1.2 : 1 / 1.2;
  const bounds = $("map").getBoundingClientRect();
  const share = [(event.clientX - bounds.left) / bounds.width, (event.clientY - bounds.top) / bounds.height];
  box = [box[0] + box[2] * (1 - factor) * share[0], box[1] + box[3] * (1 - factor) * share[1], box[2] * factor, box[3] * factor];
  showBox();
}, { passive: false });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const node = nodes.indexOf(document.activeElement);
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (node >= 0 && event.key in arrows) nextNode(node, ...arrows[event.key]);
  else if (node >= 0 && (event.key === "Enter" || event.key === " ")) choose(node);
  else if (event.key === "Escape") choose(null);
  else if (!isMoving() || (document.activeElement === $("scrub") && event.key in arrows)) return;
  else {
    const wide = extent[1] - extent[0], { before, after } = $("packet").dataset;
    const keys = {
      ArrowLeft: () => zoomTo(extent[0] - wide / 4, extent[1] - wide / 4),
      ArrowRight: () => zoomTo(extent[0] + wide / 4, extent[1] + wide / 4),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => zoomTo(run.begin, run.last),
      ",": () => scrub(now - 1),
      ".": () => scrub(now + 1),
      p: () => before && showPacket(Number(before)).then(ready),
      n: () => after && showPacket(Number(after)).then(ready),
    };
    if (!(event.key in keys)) return;
    keys[event.key]();
  }
  event.preventDefault();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
addEventListener("resize", () => isMoving() && refresh());

// A fabric that is served ------------------------------------------------------------------------------------

function about() {
  const hosts = run.nodes.filter((node) => node.kind === "host").length;
  const switches = counted(run.nodes.length - hosts, "switch", "switches");
  const fabric = `${switches}, ${counted(hosts, "host")}, ${counted(run.links.length, "link")}`;
  const live = run.live ? "; live" : "; the server has ended";
  const held = `; ${counted(run.events, "event")}, ${counted(run.packets, "packet")}`;
  $("about").textContent = fabric + (run.live === undefined ? (run.events ? held : "") : live);
}

async function follow() {
  const before = run.last, [first, last] = extent;
  Object.assign(run, await ask("extent.json"));
  about();
  if (run.last !== before) {
    // Who looks at what was is left alone.
    const atEnd = last >= before && now >= last - 1;
    if (atEnd) {
      now = run.last;
      await zoomTo(run.last - Math.max(last - first, Math.min(OF_A_LIVE_ONE, run.last - run.begin)), run.last);
    }
  }
  if (run.live) setTimeout(() => follow().catch(lost), 1000);
}

function lost(error) {
  $("about").textContent = error.message;
}

async function begin() {
  run = await ask("run.json");
  document.title = `${run.title} - Ironband`;
  $("title").textContent = run.title;
  about();
  const isLive = run.live !== undefined;
  document.body.classList.toggle("still", !isMoving());
  document.body.classList.toggle("live", isLive);
  drawMap();
  if (isMoving()) {
    extent = [isLive ? Math.max(run.begin, run.last - OF_A_LIVE_ONE) : run.begin, run.last];
    now = isLive ? run.last : run.begin;
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("cycle")) now = Number(wanted.get("cycle"));
    if (run.packets) await showPacket(Math.min(Number(wanted.get("packet") ?? 0), run.packets - 1));
    await refresh();
  }
  ready();
  if (run.live) await follow();
}

begin().catch(lost);
