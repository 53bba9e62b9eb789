"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const find = (id) => document.getElementById(id);

  /* Light and dark: the button overrides the system setting and is remembered if the browser allows it. */
  const theme = find("theme");
  const memory = (use) => {
    try {
      return use(localStorage);
    } catch {
      return null; /* a browser may block storage for local files */
    }
  };
  const remembered = memory((storage) => storage.getItem("castlereg-theme"));
  if (remembered === "light" || remembered === "dark") root.dataset.theme = remembered;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => {
    theme.setAttribute("aria-pressed", String(isDark()));
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    memory((storage) => storage.setItem("castlereg-theme", root.dataset.theme));
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  /* Sortable tables: cells without a value come last in both directions. */
  const collator = new Intl.Collator("en", { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    for (const button of table.querySelectorAll("button.sort")) {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const isNumber = button.dataset.kind === "number";
        const before = head.getAttribute("aria-sort");
        const way = before ? (before === "ascending" ? "descending" : "ascending") : isNumber ? "descending" : "ascending";
        for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way);
        const sign = way === "ascending" ? 1 : -1;
        const value = (row) => row.cells[head.cellIndex].dataset.value;
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          if (x === "" || y === "") return (x === "") - (y === "");
          return sign * (isNumber ? x - y : collator.compare(x, y));
        });
        body.append(...rows);
      });
    }
  }

  const source = find("graph-data");
  if (!source) return;
  const graph = JSON.parse(source.textContent);
  const canvas = find("canvas");
  const slider = find("threshold");
  const search = find("search");
  const near = find("near");
  const details = find("details");
  const help = details.textContent;
  const views = new Map([...canvas.querySelectorAll("svg")].map((svg) => [svg.dataset.view, svg]));
  const scales = new Map();
  let shown = graph.shown;

  const current = () => views.get(near.checked ? "neighbourhood" : "all");
  const edgesOf = (svg) => [...svg.querySelectorAll(".edge:not(.off)")];
  const nodesOf = (svg) => [...svg.querySelectorAll(".node")];
  const percent = (share) => (share === null ? "–" : Math.round(100 * share) + "%");
  const weight = (value) => value.toPrecision(3);
  const isolated = (name) => "\u2068" + name + "\u2069"; /* right-to-left names do not affect the text around them */
  const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");

  /* The slider counts hidden edges: one step is one edge, regardless of the weights. */
  const update = () => {
    for (const svg of views.values()) {
      const joined = new Set();
      for (const edge of svg.querySelectorAll(".edge")) {
        const rank = Number(edge.dataset.rank);
        edge.classList.toggle("off", rank >= shown);
        if (rank < shown) {
          joined.add(graph.edges[rank][0]);
          joined.add(graph.edges[rank][1]);
        }
      }
      for (const node of nodesOf(svg)) node.classList.toggle("loose", !joined.has(Number(node.dataset.node)));
      if (!svg.querySelector('[tabindex="0"]:not(.off)')) nodesOf(svg)[0].tabIndex = 0;
    }
    for (const row of find("edge-table").tBodies[0].rows) row.hidden = Number(row.dataset.rank) >= shown;
    const least = graph.edges.length ? weight(graph.edges[Math.max(shown, 1) - 1][2]) : "0";
    const count = shown + " of " + plural(graph.total, "edge");
    const listed = graph.edges.length;
    const drawn = edgesOf(current()).length;
    const reasons = (parts) =>
      parts.filter(([n]) => n > 0).map(([n, why]) => "; " + n + " " + why).join("");
    const rest = [[listed - shown, "hidden by the slider"], [graph.total - listed, "too weak for this page"]];
    slider.setAttribute("aria-valuetext", least + ", " + count);
    find("edge-count").textContent = count + reasons(rest.slice(0, 1));
    find("status").textContent = drawn + " of " + plural(graph.total, "edge") + " drawn" +
      reasons([[shown - drawn, "outside this view"], ...rest]) + found();
    find("least").textContent = least;
  };

  /* Search: matching nodes are outlined; Enter scrolls to the first one. */
  const found = () => {
    const wanted = search.value.trim().toLocaleLowerCase();
    const matches = graph.nodes.map((name) => wanted !== "" && name.toLocaleLowerCase().includes(wanted));
    let here = 0;
    for (const svg of views.values()) {
      svg.classList.toggle("searching", wanted !== "");
      for (const node of nodesOf(svg)) {
        const match = matches[Number(node.dataset.node)];
        node.classList.toggle("found", match);
        if (match && svg === current()) here += 1;
      }
    }
    if (wanted === "") return "";
    const all = matches.filter(Boolean).length;
    return "; " + plural(all, "node") + " found" + (here < all ? ", " + here + " in this view" : "");
  };
  search.addEventListener("input", update);
  search.addEventListener("keydown", (event) => {
    const first = current().querySelector(".found");
    if (event.key === "Enter" && first) focusOn(first);
  });

  slider.addEventListener("input", () => {
    shown = graph.edges.length - Number(slider.value);
    update();
  });

  /* Details of the item under the mouse or with keyboard focus. */
  const edgeText = ([cause, effect, w, confidence, direction, directed]) =>
    isolated(graph.nodes[cause]) + " → " + isolated(graph.nodes[effect]) + "\nweight " + weight(w) +
    " · confidence " + (confidence === null ? "not known" : percent(confidence)) +
    (direction === null ? "" : " · direction " + percent(direction)) +
    (directed ? "" : " (uncertain)");
  const nodeText = (index) => {
    const list = (which, other) => graph.edges.slice(0, shown).filter((edge) => edge[which] === index)
      .map((edge) => isolated(graph.nodes[edge[other]]) + " (" + weight(edge[2]) + ")").join(", ") || "none";
    const kind = graph.targets.includes(index) ? " (target)" : "";
    return isolated(graph.nodes[index]) + kind + "\ncauses: " + list(1, 0) + "\neffects: " + list(0, 1);
  };
  const look = (item) => {
    const svg = item.ownerSVGElement;
    for (const lit of svg.querySelectorAll(".lit")) lit.classList.remove("lit");
    svg.classList.add("looking");
    item.classList.add("lit");
    const nodes = new Set();
    if (item.classList.contains("edge")) {
      const edge = graph.edges[Number(item.dataset.rank)];
      nodes.add(edge[0]).add(edge[1]);
      details.textContent = edgeText(edge);
    } else {
      const index = Number(item.dataset.node);
      nodes.add(index);
      for (const line of edgesOf(svg)) {
        const [cause, effect] = graph.edges[Number(line.dataset.rank)];
        if (cause !== index && effect !== index) continue;
        line.classList.add("lit");
        nodes.add(cause).add(effect);
      }
      details.textContent = nodeText(index);
    }
    for (const node of nodesOf(svg)) if (nodes.has(Number(node.dataset.node))) node.classList.add("lit");
  };
  const lookAway = () => {
    const focused = document.activeElement;
    if (canvas.contains(focused) && focused.matches(".node, .edge")) return look(focused);
    for (const svg of views.values()) svg.classList.remove("looking");
    details.textContent = help;
  };
  const itemAt = (event) => event.target.closest && event.target.closest(".node, .edge");
  canvas.addEventListener("pointerover", (event) => (itemAt(event) ? look(itemAt(event)) : lookAway()));
  canvas.addEventListener("pointerleave", lookAway);
  canvas.addEventListener("focusin", (event) => itemAt(event) && look(itemAt(event)));
  canvas.addEventListener("focusout", () => setTimeout(lookAway, 0));

  /* The graph is one Tab stop; arrow keys move between its items. */
  const focusOn = (item) => {
    for (const other of item.ownerSVGElement.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
    item.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  canvas.addEventListener("keydown", (event) => {
    const item = itemAt(event);
    if (!item) return;
    const svg = item.ownerSVGElement;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "Escape") return item.blur();
    if (!(event.key in steps)) return;
    event.preventDefault();
    const walksNodes = event.key === "ArrowRight" || event.key === "ArrowLeft";
    const items = walksNodes ? nodesOf(svg) : edgesOf(svg).reverse();
    if (!items.length) return;
    const index = items.indexOf(item);
    focusOn(items[index < 0 ? 0 : (index + steps[event.key] + items.length) % items.length]);
  });
  canvas.addEventListener("click", (event) => itemAt(event) && focusOn(itemAt(event)));

  /* Zoom changes the width of the picture; the box around it scrolls. Text starts at 12 pixels. */
  const readable = 1.2;
  const fitting = (svg, least) => {
    const wide = (canvas.clientWidth - 20) / Number(svg.dataset.width);
    const high = Math.min(0.78 * innerHeight, 760) / Number(svg.dataset.height);
    return Math.min(Math.max(Math.min(wide, high), least), 1.45);
  };
  const zoom = (scale) => {
    const svg = current();
    const middle = [canvas.scrollLeft + canvas.clientWidth / 2, canvas.scrollTop + canvas.clientHeight / 2];
    const before = scales.get(svg) ?? scale;
    scales.set(svg, Math.min(Math.max(scale, 0.2), 4));
    const grown = scales.get(svg) / before;
    svg.style.width = scales.get(svg) * Number(svg.dataset.width) + "px";
    canvas.scrollLeft = grown * middle[0] - canvas.clientWidth / 2;
    canvas.scrollTop = grown * middle[1] - canvas.clientHeight / 2;
  };
  const centre = () => {
    const [box, target] = [canvas, current().querySelector(".target")].map((element) => element.getBoundingClientRect());
    canvas.scrollLeft += target.left + target.width / 2 - box.left - box.width / 2;
    canvas.scrollTop += target.top + target.height / 2 - box.top - box.height / 2;
  };
  const showView = () => {
    for (const svg of views.values()) svg.toggleAttribute("hidden", svg !== current());
    find("caption").textContent = graph.captions[current().dataset.view];
    if (!scales.has(current())) {
      zoom(fitting(current(), readable));
      centre();
    }
    update();
  };
  find("centre").addEventListener("click", () => {
    zoom(Math.max(scales.get(current()), readable));
    centre();
    look(current().querySelector(".target"));
  });
  find("fit").addEventListener("click", () => zoom(fitting(current(), 0.2)));
  find("larger").addEventListener("click", () => zoom(1.25 * scales.get(current())));
  find("smaller").addEventListener("click", () => zoom(scales.get(current()) / 1.25));
  near.addEventListener("change", showView);

  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0 || itemAt(event)) return;
    grip = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
    canvas.classList.add("dragging");
  });
  addEventListener("pointermove", (event) => {
    if (!grip) return;
    canvas.scrollLeft = grip[0] - event.clientX;
    canvas.scrollTop = grip[1] - event.clientY;
  });
  addEventListener("pointerup", () => {
    grip = null;
    canvas.classList.remove("dragging");
  });

  showView();
})();
