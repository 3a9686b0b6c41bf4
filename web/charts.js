"use strict";
// Samples over time as charts to look into: the figures of src/web/panel_series.c, drawn by uPlot from the panel's
// JSON.  Without this script the page has small pictures and a table.
(() => {
  if (typeof uPlot === "undefined") return;
  const drawn = new Map(); // by section and quantity: it outlives the section, which live.js replaces
  const high = 150;
  const minute = 60, hour = 3600, day = 86400;
  const spans = [10, 30, minute, 5 * minute, 10 * minute, 30 * minute, hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day];

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Figures are drawn in the unit that the page shows them in.
  function texts(figure) {
    const decimals = Number(figure.dataset.one) > 1 ? 1 : 0;
    return (value) => value.toFixed(decimals) + figure.dataset.suffix;
  }

  // As few decimals as say the distance of the ticks exactly.
  function ticks(figure) {
    return (_, values, __, ___, step) => {
      const decimals = [0, 1, 2].find((d) => Math.abs(step - Number(step.toFixed(d))) < 1e-9) ?? 3;
      return values.map((v) => v.toFixed(decimals) + figure.dataset.suffix);
    };
  }

  function times(_, values, __, ___, step) {
    const days = values.length > 1 && values[values.length - 1] - values[0] > 2 * day;
    const clock = { hour: "numeric", minute: "2-digit", second: step < minute ? "2-digit" : undefined };
    const form = days ? { month: "short", day: "numeric" } : clock;
    return values.map((at) => new Intl.DateTimeFormat([], form).format(at * 1000));
  }

  // Columns of uPlot: a step without samples is null, which it leaves blank.
  function columns(reply, series, one) {
    const since = Number(reply.since_ns) / 1e9, step = Number(reply.step_ns) / 1e9;
    const steps = Math.floor((Number(reply.until_ns) / 1e9 - since) / step) + 1;
    const rows = [[], [], [], []];
    const at = new Map(series.points.map((p) => [Math.round((Number(p.at_ns) / 1e9 - since) / step), p]));
    for (let i = 0; i < steps; i++) {
      const point = at.get(i);
      rows[0].push(since + i * step);
      rows[1].push(point ? point.max / one : null);
      rows[2].push(point ? point.min / one : null);
      rows[3].push(point ? point.mean / one : null);
    }
    return rows;
  }

  function note(chart, index) {
    const { plot, line, text, rest } = chart;
    if (index == null || plot.data[3][index] == null) {
      line.textContent = rest;
      return;
    }
    const at = new Date(plot.data[0][index] * 1000);
    line.textContent = `${at.toLocaleString()}: ${text(plot.data[3][index])} (${text(plot.data[2][index])} to ${text(plot.data[1][index])})`;
  }

  // What was usual before, behind the line.
  function usual(plot, chart) {
    const { usual_min: least, usual_max: most } = chart.series;
    if (most === undefined) return;
    const one = Number(chart.figure.dataset.one);
    const top = plot.valToPos(most / one, "y", true), low = plot.valToPos(least / one, "y", true);
    plot.ctx.save();
    plot.ctx.fillStyle = color("--sunk");
    plot.ctx.fillRect(plot.bbox.left, top, plot.bbox.width, Math.max(low - top, 1));
    plot.ctx.restore();
  }

  // A point between two gaps is no line: it is a dot.
  function alone(plot, column) {
    const values = plot.data[column];
    return values.map((_, i) => i).filter((i) => values[i] != null && values[i - 1] == null && values[i + 1] == null);
  }

  function options(figure, chart) {
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const edge = { width: 0, points: { show: false } };
    return {
      width: figure.clientWidth, height: high, legend: { show: false }, padding: [8, 24, 0, 0],
      cursor: { y: false },
      scales: {
        x: { range: (plot, least, most) => (plot.data[0].length > 1 ? [least, most] : [least - 60, least + 60]) },
        y: { range: () => [0, Number(chart.figure.dataset.top) / Number(chart.figure.dataset.one)] },
      },
      axes: [{ ...axis, space: 80, size: 28, incrs: spans, values: times }, { ...axis, size: 64, values: ticks(figure) }],
      series: [{}, edge, edge, { stroke: color("--accent"), width: 1.5, points: { size: 3, filter: alone } }],
      bands: [{ series: [1, 2], fill: color("--board") }],
      hooks: { setCursor: [(plot) => note(chart, plot.cursor.idx)], drawClear: [(plot) => usual(plot, chart)] },
    };
  }

  function place(chart, figure) {
    chart.figure = figure;
    chart.text = texts(figure);
    chart.line = figure.querySelector(".note");
    chart.rest = chart.line.textContent;
    figure.querySelector("svg").after(chart.plot.root);
    figure.classList.add("drawn");
    chart.watch.observe(figure);
  }

  function draw(figure, key, reply, series) {
    const chart = { figure, series, text: texts(figure), line: figure.querySelector(".note") };
    chart.plot = new uPlot(options(figure, chart), columns(reply, series, Number(figure.dataset.one)));
    chart.watch = new ResizeObserver(() => {
      const wide = chart.figure.clientWidth;
      if (wide > 0 && wide !== chart.plot.width) chart.plot.setSize({ width: wide, height: high });
    });
    drawn.set(key, chart);
    place(chart, figure);
  }

  function zoomed(plot) {
    const at = plot.data[0];
    return plot.scales.x.min > at[0] || plot.scales.x.max < at[at.length - 1];
  }

  async function update(section) {
    const query = new URLSearchParams(location.search);
    query.set("json", section.id);
    const response = await fetch(`${location.pathname}?${query}`);
    if (!response.ok) return;
    const reply = await response.json();
    for (const figure of section.querySelectorAll(".trend")) {
      const series = reply.items.find((item) => item.quantity === figure.dataset.quantity);
      const key = `${section.id} ${figure.dataset.quantity}`, chart = drawn.get(key);
      if (!series) continue;
      if (!chart) {
        draw(figure, key, reply, series);
      } else {
        chart.series = series;
        chart.plot.setData(columns(reply, series, Number(figure.dataset.one)), !zoomed(chart.plot));
      }
    }
  }

  // A section as it came: charts that there are stand in it at once, so that nothing flickers.
  function adopt(section) {
    for (const figure of section.querySelectorAll(".trend")) {
      const chart = drawn.get(`${section.id} ${figure.dataset.quantity}`);
      if (chart) place(chart, figure);
    }
    update(section).catch(() => {}); // the pictures stay
  }

  function sections(root) {
    return [...root.querySelectorAll("section.panel")].filter((s) => s.querySelector(".trend"));
  }

  sections(document).forEach(adopt);
  new MutationObserver((changes) => {
    for (const change of changes)
      for (const node of change.addedNodes)
        if (node.nodeType === 1 && node.matches("section.panel") && node.querySelector(".trend")) adopt(node);
  }).observe(document.querySelector("main"), { childList: true });

  // Canvases have no style sheet: colors are read again when they change.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of drawn.values()) {
      chart.plot.destroy();
      chart.watch.disconnect();
    }
    drawn.clear();
    sections(document).forEach(adopt);
  });
})();
