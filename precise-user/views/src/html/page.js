"use strict";
(function () {
  document.documentElement.classList.add("js");
  const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

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

  // Search: rows without the text are hidden, in all tables.
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  function search() {
    const wanted = find.value.trim().toLowerCase();
    let rows = 0;
    for (const row of document.querySelectorAll("table.sortable tbody tr")) {
      const names = Array.from(row.querySelectorAll("td.text"), (cell) => cell.textContent).join("\n");
      const missed = wanted !== "" && !names.toLowerCase().includes(wanted);
      row.classList.toggle("missed", missed);
      if (!missed && !row.hidden) rows++;
    }
    found.textContent = wanted === "" ? "" : rows === 1 ? "1 row" : number(rows) + " rows";
  }
  find.addEventListener("input", search);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      find.focus();
    } else if (event.key === "Escape" && event.target === find) {
      find.value = "";
      search();
    }
  });

  // Heatmap: what is under the pointer, or under the cell that the arrow keys chose.
  const data = document.getElementById("heatmap-data");
  if (!data) return;
  const map = JSON.parse(data.textContent);
  const tip = document.getElementById("tip");
  const clean = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
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

  // A selection: columns of a panel. The tables then count only its samples.
  const numbers = document.getElementById("tables-data");
  const tables = numbers ? JSON.parse(numbers.textContent) : { flags: [], tables: [] };
  const followers = Array.from(document.querySelectorAll("table[data-follows]"), (table) => (
    { table, whole: table.tBodies[0].cloneNode(true), of: tables.tables[Number(table.dataset.follows)] }
  ));
  const bar = document.getElementById("selected");
  let selected = null;

  // The samples and their weight within the selection.
  function within(cells, of) {
    let samples = 0, weight = 0;
    for (let at = 0; at < cells.length; at += 4) {
      if (cells[at + 1] !== of.panel || cells[at] < of.first || cells[at] > of.last) continue;
      samples += cells[at + 2];
      weight += cells[at + 3];
    }
    return { samples, weight };
  }

  // Half of Wilson's interval at 95 %.
  function half(p, n) {
    const z = 1.959964, zz = z * z;
    return z * Math.sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n);
  }

  function follow(follower) {
    const body = follower.whole.cloneNode(true);
    if (selected) {
      const all = within(follower.of.all, selected);
      const rows = Array.from(body.rows).filter((row) => !row.classList.contains("rest"));
      const counted = rows.map((row, at) => ({ row, ...within(follower.of.rows[at] || [], selected) }));
      let rest = all.samples;
      for (const { row, samples, weight } of counted) {
        const share = all.weight > 0 ? weight / all.weight : 0;
        Array.from(row.cells).forEach((cell, column) => {
          if (cell.classList.contains("text")) return;
          const value = column === 0 ? share : samples;
          const shown = column === 0
            ? (share * 100).toFixed(1) + "% \u00b1" + Math.max(0.1, half(share, all.samples || 1) * 100).toFixed(1)
            : number(samples);
          // Only shares and samples are known of a part.
          cell.textContent = column < 2 ? shown : "";
          if (column < 2) cell.dataset.v = String(value); else delete cell.dataset.v;
        });
        row.hidden = samples === 0;
        rest -= samples;
      }
      counted.sort((a, b) => b.weight - a.weight);
      body.prepend(...counted.map((group) => group.row));
      for (const row of body.querySelectorAll("tr.rest")) {
        row.hidden = rest === 0;
        row.cells[0].textContent = "(others, with " + number(rest) + (rest === 1 ? " sample)" : " samples)");
      }
      if (all.samples === 0) {
        const row = body.insertRow(0);
        row.className = "rest";
        row.insertCell().textContent = "No samples in the selection.";
        row.cells[0].colSpan = follower.table.tHead.rows[0].cells.length;
      }
    }
    follower.table.tBodies[0].replaceWith(body);
    for (const header of follower.table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
    follower.table.tHead.rows[0].cells[0].setAttribute("aria-sort", "descending");
  }

  // The time of a selection, as --time takes it. To the nanosecond: a rounded edge would take in the
  // next epoch, since epochs are kept whole.
  function range(of) {
    const seconds = (ns) => (ns / 1e9).toFixed(9).replace(/\.?0+$/, "") + "s";
    return seconds(map.columns[of.first].start_ns) + ".." + seconds(map.columns[of.last].end_ns);
  }

  function select(of) {
    selected = of;
    for (const svg of document.querySelectorAll("svg[data-panel]")) {
      const picked = svg.querySelector(".picked");
      const here = of !== null && Number(svg.dataset.panel) === of.panel;
      picked.setAttribute("x", here ? of.first : 0);
      picked.setAttribute("width", here ? of.last - of.first + 1 : 0);
    }
    followers.forEach(follow);
    document.documentElement.classList.toggle("selecting", of !== null);
    bar.hidden = of === null;
    if (of !== null) {
      const from = map.columns[of.first].start_ns, to = map.columns[of.last].end_ns;
      const flag = tables.flags[of.panel];
      const title = map.panels.length > 1 ? " of " + clean(map.panels[of.panel].title) : "";
      bar.querySelector(".what").textContent = "Tables show " + time(from) + " to " + time(to) + title + ".";
      const command = bar.querySelector("code");
      command.textContent = command.dataset.command + " --time " + range(of) + (flag || "");
      bar.querySelector(".no-flag").hidden = flag !== null && flag !== undefined;
    }
    const hash = of === null ? "" : "#select=" + range(of) + "," + encodeURIComponent(map.panels[of.panel].title);
    const was = location.hash.startsWith("#select=");
    // A selection is one step of the browser's history, so that Back ends it.
    if (hash !== "" && !was) {
      history.pushState(null, "", hash);
    } else if (location.hash !== hash && was) {
      history.replaceState(null, "", hash || location.pathname + location.search);
    }
    search();
  }

  // A selection in the address is one that somebody shared, perhaps of a page with other columns:
  // all columns that have a part of its time are selected.
  function shared() {
    const parts = /^#select=(\d+(?:\.\d+)?)s\.\.(\d+(?:\.\d+)?)s,(.*)$/.exec(location.hash);
    if (!parts) {
      if (location.hash === "" && selected !== null) select(null);
      return;
    }
    const [from, to] = parts.slice(1, 3).map((seconds) => Math.round(Number(seconds) * 1e9));
    const panel = map.panels.findIndex((one) => encodeURIComponent(one.title) === parts[3]);
    const first = map.columns.findIndex((column) => column.end_ns > from);
    const last = map.columns.findLastIndex((column) => column.start_ns < to);
    if (panel >= 0 && first >= 0 && first <= last) select({ panel, first, last });
  }

  for (const svg of document.querySelectorAll("svg[data-panel]")) {
    const picked = svg.querySelector(".here").cloneNode();
    picked.setAttribute("class", "picked");
    picked.setAttribute("height", svg.dataset.rows);
    picked.setAttribute("width", 0);
    svg.insertBefore(picked, svg.querySelector(".here"));
    const panel = Number(svg.dataset.panel);
    const between = (a, b) => ({ panel, first: Math.min(a, b), last: Math.max(a, b) });
    // The column where a drag, or a selection by keys, began.
    let drag = null, anchor = null;
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
    svg.addEventListener("pointermove", (event) => {
      point(event);
      if (drag !== null && at[0] !== drag) select(between(drag, at[0]));
    });
    svg.addEventListener("pointerdown", (event) => {
      point(event);
      drag = event.button === 0 ? at[0] : null;
      if (drag !== null && event.isTrusted) svg.setPointerCapture(event.pointerId);
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { drag = null; });
    svg.addEventListener("pointerleave", () => hide(svg));
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) keyed(); });
    svg.addEventListener("blur", () => hide(svg));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Escape") {
        hide(svg);
        select(null);
      }
      if (!step) return;
      event.preventDefault();
      anchor = event.shiftKey ? anchor ?? at[0] : null;
      at = [
        Math.max(0, Math.min(columns - 1, at[0] + step[0])),
        Math.max(first, Math.min(last, at[1] + step[1])),
      ];
      keyed();
      if (anchor !== null) select(between(anchor, at[0]));
    });
  }
  // Also when the focus is elsewhere, as after opening a link with a selection.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selected !== null && event.target !== find) select(null);
  });
  bar.querySelector("button").addEventListener("click", () => select(null));
  window.addEventListener("hashchange", shared);
  shared();
})();
