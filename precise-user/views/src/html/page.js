"use strict";
(function () {
  document.documentElement.classList.add("js");

  // Tables: a button in a header sorts by its column, numbers from large to small first.
  function sortBy(header) {
    const table = header.closest("table");
    const body = table.tBodies[0];
    const column = header.cellIndex;
    const numbers = header.classList.contains("n") || header.classList.contains("share");
    const was = header.getAttribute("aria-sort");
    const down = was ? was === "ascending" : numbers;
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.cells[column];
      if (!cell) return numbers ? -Infinity : "";
      if (!numbers) return cell.textContent;
      return cell.dataset.v === undefined ? -Infinity : Number(cell.dataset.v);
    };
    const rows = Array.from(body.rows).filter((row) => !row.classList.contains("rest"));
    const rest = Array.from(body.rows).filter((row) => row.classList.contains("rest"));
    rows.sort((a, b) => {
      const x = value(a), y = value(b);
      const order = numbers ? (x === y ? 0 : x < y ? -1 : 1) : x.localeCompare(y);
      return down ? -order : order;
    });
    body.append(...rows, ...rest);
  }
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sortBy(button.parentNode));
  }

  // Heatmap: what is under the pointer, or under the cell that the arrow keys chose.
  const data = document.getElementById("heatmap-data");
  if (!data) return;
  const map = JSON.parse(data.textContent);
  const tip = document.getElementById("tip");
  const clean = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
  const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const short = map.duration_ns < 2e9;
  const time = (ns) => short ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e9).toFixed(2) + " s";
  const cells = map.panels.map((panel) => {
    const found = new Map();
    for (const [column, row, samples] of panel.cells) found.set(column + ":" + row, samples);
    return found;
  });

  function rowText(row) {
    const of = map.rows[row];
    if (map.y === "latency_cycles" && of.from !== undefined) {
      return number(of.from) + " to " + number(of.to - 1) + " cycles";
    }
    if (of.from !== undefined) return clean(of.name) + " from 0x" + of.from.toString(16);
    return clean(of.name);
  }

  function show(svg, column, row, x, y) {
    const panel = Number(svg.dataset.panel);
    const samples = cells[panel].get(column + ":" + row) || 0;
    const when = map.columns[column];
    tip.textContent = number(samples) + (samples === 1 ? " sample" : " samples") + " of " +
      number(map.panels[panel].samples) + "\n" + time(when.start_ns) + " to " + time(when.end_ns) + "\n" + rowText(row);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, document.documentElement.clientWidth - box.width - 6);
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = (y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18) + "px";
    const here = svg.querySelector(".here");
    here.setAttribute("x", column);
    here.setAttribute("y", Number(svg.dataset.first) + Number(svg.dataset.rows) - 1 - row);
    here.setAttribute("width", 1);
    here.setAttribute("height", 1);
  }

  function hide(svg) {
    tip.hidden = true;
    svg.querySelector(".here").setAttribute("width", 0);
  }

  for (const svg of document.querySelectorAll("svg[data-panel]")) {
    const rows = Number(svg.dataset.rows), first = Number(svg.dataset.first), columns = map.columns.length;
    const last = first + rows - 1;
    let at = [0, last];
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const within = (part, size) => Math.max(0, Math.min(size - 1, Math.floor(part * size)));
      at = [
        within((event.clientX - box.left) / box.width, columns),
        last - within((event.clientY - box.top) / box.height, rows),
      ];
      show(svg, at[0], at[1], event.clientX, event.clientY);
    };
    const keyed = () => {
      const box = svg.getBoundingClientRect();
      show(svg, at[0], at[1], box.left + (at[0] + 0.5) / columns * box.width, box.top + (last - at[1] + 0.5) / rows * box.height);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => hide(svg));
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) keyed(); });
    svg.addEventListener("blur", () => hide(svg));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Escape") hide(svg);
      if (!step) return;
      event.preventDefault();
      at = [
        Math.max(0, Math.min(columns - 1, at[0] + step[0])),
        Math.max(first, Math.min(last, at[1] + step[1])),
      ];
      keyed();
    });
  }
})();
