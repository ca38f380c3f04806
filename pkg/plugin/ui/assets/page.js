// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Shows view.json, and asks for it again while the page is visible. Every text goes into the page
// as text, never as HTML.
"use strict";

const pause = 2000; // milliseconds
const marks = { good: "✔", warning: "•", bad: "✖" };
const main = document.getElementById("main");
const shown = new Map(); // section → the JSON that it shows
let tag = "";

// make returns an element with attributes, and with texts and elements in it.
function make(name, attributes, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined) {
      element.setAttribute(key, value);
    }
  }
  element.append(...content.filter((c) => c !== undefined && c !== null && c !== ""));
  return element;
}

function list(values) {
  return values ?? [];
}

// scroll lets a wide table move below a title, also with the keyboard.
function scroll(title, table) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table);
}

function table(title, content, cellTone) {
  const header = Math.max(0, content.columns.indexOf("NAME")); // the cell that names the row
  const head = make("tr", {}, ...list(content.columns).map((c) => make("th", { scope: "col" }, c)));
  const body = make("tbody");
  for (const row of list(content.rows)) {
    const cells = row.cells.map((text, i) => {
      const mark = i === 0 && row.tone ? make("span", { class: row.tone, "aria-hidden": "true" }, marks[row.tone] + " ") : undefined;
      const tone = content.columns[i] === cellTone ? row.tone : undefined;
      return make(i === header ? "th" : "td", i === header ? { scope: "row" } : { class: tone }, mark, text);
    });
    body.append(make("tr", {}, ...cells));
    if (row.fault) {
      body.append(make("tr", {}, make("td", { class: "fault", colspan: String(row.cells.length) }, row.fault)));
    }
  }
  return scroll(title, make("table", { class: cellTone ? "dense" : undefined }, make("thead", {}, head), body));
}

const toneOfLabel = { fault: "bad", deletion: "bad", unknown: "warning" };

function clusterSection(cluster, id) {
  const details = make("dl");
  for (const d of cluster.details) {
    details.append(make("dt", {}, d.label), make("dd", { class: toneOfLabel[d.label] }, d.text));
  }
  const parts = [
    make("h2", { id: id + "-title" }, cluster.name + " ", make("span", { class: "verdict " + cluster.tone }, cluster.verdict)),
    cluster.message ? make("p", {}, cluster.message) : undefined,
    details,
  ];
  if (list(cluster.members.rows).length) {
    parts.push(make("h3", {}, "Members"), table("Members of " + cluster.name, cluster.members, "HEALTH"));
  }
  if (list(cluster.steps).length) {
    const steps = cluster.steps.map((s) => make("li", {}, s.why, s.command ? make("code", {}, s.command) : undefined));
    parts.push(make("h3", {}, "Next steps"), make("ol", {}, ...steps));
  }
  return parts;
}

function overviewSection(view) {
  if (!list(view.clusters).length) {
    return [make("h2", { id: "overview-title" }, "Overview"), make("p", {}, "There is no EtcdCluster.")];
  }
  const body = make("tbody");
  view.clusters.forEach((cluster, i) => {
    body.append(make("tr", {},
      make("th", { scope: "row" }, make("a", { href: "#cluster-" + i }, cluster.name)),
      make("td", {}, make("span", { class: "verdict " + cluster.tone }, marks[cluster.tone] + " " + cluster.verdict)),
      make("td", {}, cluster.message ?? ""),
      make("td", {}, list(cluster.work).join("; ") || "-")));
  });
  const head = make("tr", {}, ...["CLUSTER", "VERDICT", "MESSAGE", "UNDER WAY"].map((c) => make("th", { scope: "col" }, c)));
  return [make("h2", { id: "overview-title" }, "Overview"), scroll("Overview", make("table", {}, make("thead", {}, head), body))];
}

function tableSection(title, content, id) {
  const parts = [make("h2", { id: id + "-title" }, title)];
  if (content.problem) {
    parts.push(make("p", { class: "warning" }, content.problem));
  } else if (list(content.rows).length) {
    parts.push(table(title, content));
  } else {
    parts.push(make("p", {}, "There are none."));
  }
  return parts;
}

// draw replaces a section if what it shows has changed. Others keep their place and selection.
function draw(id, what, parts) {
  const json = JSON.stringify(what);
  let section = document.getElementById(id);
  if (!section) {
    section = make("section", { id: id, "aria-labelledby": id + "-title" });
  } else if (shown.get(id) === json) {
    return section;
  }
  shown.set(id, json);
  section.replaceChildren(...parts().filter((p) => p));
  return section;
}

function drawView(view) {
  document.getElementById("scope").textContent = view.scope + ".";
  const problem = document.getElementById("problem");
  problem.textContent = view.problem ?? "";
  problem.hidden = !view.problem;
  const bad = list(view.clusters).filter((c) => c.tone !== "good").length;
  document.title = (bad ? "(" + bad + ") " : "") + "etcd clusters";
  const clusters = list(view.clusters);
  const sections = [draw("overview", clusters.map((c) => [c.name, c.verdict, c.message, c.work]), () => overviewSection(view))];
  clusters.forEach((c, i) => sections.push(draw("cluster-" + i, c, () => clusterSection(c, "cluster-" + i))));
  sections.push(draw("backups", view.backups, () => tableSection("Backups", view.backups, "backups")));
  sections.push(draw("restores", view.restores, () => tableSection("Restores", view.restores, "restores")));
  for (const old of [...main.children]) {
    if (!sections.includes(old)) {
      shown.delete(old.id);
      old.remove();
    }
  }
  sections.forEach((section, i) => {
    if (main.children[i] !== section) {
      main.insertBefore(section, main.children[i] ?? null);
    }
  });
  main.setAttribute("aria-busy", "false");
}

async function update() {
  const response = await fetch("view.json", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
  if (response.status !== 304) {
    if (!response.ok) {
      throw new Error("status " + response.status);
    }
    drawView(await response.json());
    tag = response.headers.get("ETag") ?? "";
  }
  document.getElementById("time").textContent = "As of " + new Date().toLocaleTimeString() + ".";
}

async function run() {
  if (!document.hidden) {
    try {
      await update();
    } catch (error) {
      const problem = document.getElementById("problem");
      problem.textContent = "kubectl etcd ui does not respond: what you see is old (" + error.message + ").";
      problem.hidden = false;
      tag = "";
    }
  }
  setTimeout(run, pause);
}

run();
