"use strict";
// Behaviour of the page: tables are sorted, filtered and stacked on narrow screens, a person is
// opened, colours are changed. Nothing is loaded or sent. Names from files are written as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  function make(tag, text, parent, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  }

  // Colours follow the system until the reader chooses.
  const theme = document.getElementById("theme");
  const dark = () => document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  name();
  const print = document.getElementById("print");
  print.hidden = false;
  print.addEventListener("click", () => window.print());

  // Tables show their first rows until all are asked for; sorting and filtering use all rows.
  const wanted = new Map();
  function refresh(table) {
    const filter = wanted.get(table.id) || (() => true);
    const first = table.dataset.all ? Infinity : Number(table.dataset.first || 50);
    let shown = 0, fitting = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = filter(row);
      fitting += fits;
      row.hidden = !(fits && fitting <= first);
      shown += !row.hidden;
    }
    const more = table.closest(".scroll").nextElementSibling;
    if (!more || !more.classList.contains("more")) return;
    const total = table.tBodies[0].rows.length;
    more.hidden = total <= Number(table.dataset.first || 50) && fitting === total;
    more.querySelector("span").textContent = `${shown} of ${fitting} rows shown` +
      (fitting < total ? `, ${total} without the filter` : "") + ".";
    more.querySelector("button").hidden = shown === fitting;
  }

  const order = new Intl.Collator("en", {numeric: true});
  function key(row, column) {
    const cell = row.cells[column];
    return cell.dataset.s === undefined ? cell.textContent : cell.dataset.s;
  }
  function compare(a, b, numeric) {
    if (a === "" || b === "") return (a === "") - (b === "");  // what is unknown comes last
    return numeric ? Number(a) - Number(b) : order.compare(a, b);
  }
  function sort(table, column) {
    const head = table.tHead.rows[0].cells[column];
    const numeric = head.classList.contains("n");
    const now = head.getAttribute("aria-sort");
    // Numbers are first sorted from the largest, names from the first letter.
    const down = now === "none" ? numeric : now === "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    const sign = down ? -1 : 1;
    rows.sort((a, b) => (a[0] === "" || b[0] === "")
      ? compare(a[0], b[0], numeric) : sign * compare(a[0], b[0], numeric));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
    refresh(table);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => sort(table, column));
    });
    const more = table.closest(".scroll").nextElementSibling;
    if (more && more.classList.contains("more")) {
      more.querySelector("button").addEventListener("click", () => {
        table.dataset.all = "1";
        refresh(table);
      });
    }
  }
  for (const form of document.querySelectorAll("form.filters")) {
    const table = document.getElementById(form.dataset.table);
    const apply = () => {
      const text = form.elements.text.value.trim().toLowerCase();
      const tags = [...form.querySelectorAll("select")].filter((s) => s.value !== "");
      wanted.set(table.id, (row) =>
        tags.every((s) => row.dataset[s.name] === s.value) &&
        (text === "" || row.textContent.toLowerCase().includes(text)));
      refresh(table);
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }
  document.querySelectorAll("table.sortable").forEach(refresh);

  // On a narrow screen a table that is too wide shows one card per row, its cells with headings.
  const narrow = matchMedia("screen and (max-width: 40rem)");
  function stack() {
    for (const holder of document.querySelectorAll(".scroll")) {
      const table = holder.querySelector("table");
      table.classList.remove("stacked");
      if (!narrow.matches || table.scrollWidth <= holder.clientWidth) continue;
      const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
      for (const row of table.tBodies[0].rows) {
        [...row.cells].forEach((cell, at) => { cell.dataset.label = heads[at]; });
      }
      table.classList.add("stacked");
    }
  }
  addEventListener("resize", stack);  // also when a phone is turned
  document.addEventListener("toggle", stack, true);  // a table inside <details> has no width before
  stack();

  // One person.
  const dialog = document.getElementById("person");
  function bars(parent, caption, rows) {
    const table = make("table", null, parent, {class: "bars"});
    make("caption", caption, table);
    const most = Math.max(...rows.map((row) => Math.abs(row[1])), 1e-12);
    const body = make("tbody", null, table);
    for (const [label, value] of rows) {
      const row = make("tr", null, body);
      make("th", label, row, {scope: "row"});
      const bar = make("div", null, make("td", null, row), {class: "bar", "aria-hidden": "true"});
      const width = 50 * Math.abs(value) / most;
      if (width > 0.3) {
        const span = make("span", null, bar, {class: value < 0 ? "minus" : "plus"});
        span.style.left = `${value < 0 ? 50 - width : 50}%`;
        span.style.width = `${width}%`;
      }
      const shown = Math.abs(value).toFixed(2);
      const sign = Number(shown) === 0 ? "" : value < 0 ? "−" : "+";
      make("td", sign + shown, row, {class: "n"});
    }
    return table;
  }
  function open(index) {
    const person = data.people[index];
    document.getElementById("person-name").textContent = person.name;
    const body = document.getElementById("person-body");
    body.replaceChildren();
    const list = make("dl", null, body, {class: "list"});
    for (const [label, value] of person.facts) {
      const pair = make("div", null, list);
      make("dt", label, pair);
      make("dd", value, pair);
    }
    if (person.models.length) {
      const table = make("table", null, body);
      make("caption", "What each model predicted", table);
      const head = make("tr", null, make("thead", null, table));
      for (const label of data.personHeads) make("th", label, head, {scope: "col"});
      const rows = make("tbody", null, table);
      for (const cells of person.models) {
        const row = make("tr", null, rows);
        for (const text of cells) make("td", text, row);
      }
    }
    if (person.terms.length) bars(body, data.termsCaption, person.terms);
    document.documentElement.classList.add("one-person");
    if (!dialog.open) dialog.showModal();
  }
  if (dialog) {
    for (const button of document.querySelectorAll("button.person")) {
      button.addEventListener("click", () => open(Number(button.dataset.person)));
    }
    dialog.addEventListener("close", () => document.documentElement.classList.remove("one-person"));
    document.getElementById("person-print").addEventListener("click", () => window.print());
  }

  // The methods paragraph.
  const copy = document.getElementById("copy");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const text = document.getElementById("methods-text");
    const said = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      said.textContent = "Selected; copy it with the keyboard.";
    }
  });

  window.baldurPage = {data, make, bars};
})();
