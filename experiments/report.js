// The report's behaviour: sorting of tables, the switch of colours, everything open when printed, and a self-test.
// Without script the page loses nothing else.
"use strict";
(function () {
  var problems = [], testing = location.hash === "#selftest";
  window.addEventListener("error", function (event) { problems.push("script: " + event.message); });

  function each(list, action) { Array.prototype.forEach.call(list, action); }

  // A cell's value is in data-value: a number where both are numbers, else text; what is missing comes last.
  function compare(left, right, sign) {
    var a = left.getAttribute("data-value"), b = right.getAttribute("data-value");
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
    var x = Number(a), y = Number(b);
    if (!isNaN(x) && !isNaN(y)) return sign * (x - y);
    return sign * a.localeCompare(b);
  }

  function sortBy(header) {
    var table = header.closest("table"), body = table.tBodies[0], column = header.cellIndex;
    var descending = header.getAttribute("aria-sort") === "ascending";
    each(table.tHead.rows[0].cells, function (cell) { cell.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    var rows = Array.prototype.slice.call(body.rows);
    rows.forEach(function (row, i) { row.setAttribute("data-before", i); });
    rows.sort(function (one, other) {
      var order = compare(one.cells[column], other.cells[column], descending ? -1 : 1);
      return order !== 0 ? order : one.getAttribute("data-before") - other.getAttribute("data-before");
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }

  each(document.querySelectorAll("th button"), function (button) {
    button.addEventListener("click", function () { sortBy(button.parentNode); });
  });

  var root = document.documentElement, button = document.getElementById("theme");
  function isDark() {
    var set = root.getAttribute("data-theme");
    return set === null ? matchMedia("(prefers-color-scheme: dark)").matches : set === "dark";
  }
  function name() { button.textContent = isDark() ? "Light colours" : "Dark colours"; }
  function remembered(value) { // storage may be closed to a page from a file
    try {
      if (value !== undefined) localStorage.setItem("lakestream-theme", value);
      return localStorage.getItem("lakestream-theme");
    } catch (refused) { return null; }
  }
  button.addEventListener("click", function () {
    var theme = isDark() ? "light" : "dark";
    root.setAttribute("data-theme", theme);
    if (!testing) remembered(theme);
    name();
  });
  if (!testing && (remembered() === "dark" || remembered() === "light")) root.setAttribute("data-theme", remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  button.hidden = false;
  name();

  window.addEventListener("beforeprint", function () {
    each(document.querySelectorAll("details"), function (one) { one.open = true; });
  });

  function check(good, message) { if (!good) problems.push(message); }

  function testPictures() {
    var pictures = document.querySelectorAll(".picture > svg");
    each(pictures, function (svg) {
      var box = svg.getBoundingClientRect(), where = svg.closest("section").id;
      check(box.width > 200 && box.height > 100, where + ": picture of " + box.width + " x " + box.height);
      check(svg.getElementsByTagName("text").length > 0, where + ": picture without text");
      each(svg.querySelectorAll("use"), function (use) {
        check(document.getElementById(use.getAttribute("href").slice(1)) !== null, where + ": mark without a shape");
      });
      var smallest = Infinity, scale = box.width / svg.viewBox.baseVal.width;
      each(svg.querySelectorAll("[font-size]"), function (node) {
        smallest = Math.min(smallest, scale * Number(node.getAttribute("font-size")));
      });
      check(smallest > 5.5, where + ": text of " + smallest.toFixed(1) + " px");
    });
    return pictures.length;
  }

  function inOrder(table, column, sign) {
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    return rows.every(function (row, i) { return i === 0 || compare(rows[i - 1].cells[column], row.cells[column], sign) <= 0; });
  }

  function testTables() {
    var tables = document.querySelectorAll("table.sortable"), columns = 0;
    each(tables, function (table) {
      var where = table.closest("section").id, rows = table.tBodies[0].rows.length;
      each(table.tHead.rows[0].cells, function (header) {
        var press = header.querySelector("button");
        press.click();
        check(inOrder(table, header.cellIndex, 1), where + ": column " + header.cellIndex + " does not ascend");
        press.click();
        check(inOrder(table, header.cellIndex, -1), where + ": column " + header.cellIndex + " does not descend");
        columns++;
      });
      check(table.tBodies[0].rows.length === rows, where + ": sorting lost rows");
    });
    return tables.length + " tables, " + columns + " columns";
  }

  function testPage() {
    var ids = {}, ground = getComputedStyle(document.body).backgroundColor;
    each(document.querySelectorAll("[id]"), function (node) {
      check(!ids[node.id], "id twice: " + node.id);
      ids[node.id] = true;
    });
    each(document.querySelectorAll("a[href^='#']"), function (link) {
      check(ids[decodeURIComponent(link.getAttribute("href").slice(1))], "link to nowhere: " + link.getAttribute("href"));
    });
    check(root.scrollWidth <= root.clientWidth, "the page scrolls sideways: " + root.scrollWidth + " > " + root.clientWidth);
    button.click();
    check(getComputedStyle(document.body).backgroundColor !== ground, "the switch changes no colour");
    button.click();
    check(getComputedStyle(document.body).backgroundColor === ground, "the switch does not switch back");
    check(performance.getEntriesByType("resource").length === 0, "something was loaded from outside");
  }

  function selfTest() {
    var pictures = testPictures(), tables = testTables();
    testPage();
    var said = document.createElement("div");
    said.id = "selftest";
    said.setAttribute("data-result", problems.length === 0 ? "ok" : "failed");
    said.textContent = pictures + " pictures, " + tables + ", width " + root.clientWidth +
      (problems.length === 0 ? ": ok" : "\n" + problems.join("\n"));
    document.body.insertBefore(said, document.body.firstChild);
  }
  if (testing) {
    if (document.readyState === "complete") selfTest(); else window.addEventListener("load", selfTest);
  }
})();
