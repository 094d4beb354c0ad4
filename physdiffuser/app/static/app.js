(() => {
  const { token, table: opened, limit } = document.body.dataset;
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const ACTIVE = ["waiting", "running", "stopping"];
  const state = { view: "start", table: null, runs: [], run: null, row: null, source: null, asked: 0 };

  // --- talking to the server -------------------------------------------------------------------------------
  const address = (path) => `${path}${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}`;

  const ask = async (path, options = {}) => {
    let answer;
    try {
      answer = await fetch(path, { ...options, headers: { "x-physdiffuser-token": token, ...options.headers } });
    } catch {
      throw new Error("physdiffuser does not answer. If it was ended, start it again: what was found is in the run folders.");
    }
    if (answer.ok) return answer;
    let text = `the server said ${answer.status}`;
    try { text = (await answer.json()).error || text; } catch { /* no JSON */ }
    throw new Error(text);
  };
  const post = (path, content) => ask(path, { method: "POST", body: JSON.stringify(content) });
  const json = async (promise) => (await promise).json();
  const html = async (promise) => (await promise).text();

  const say = (text) => {
    $("toast").textContent = text;
    clearTimeout(say.clearing);
    say.clearing = setTimeout(() => { $("toast").textContent = ""; }, 2500);
  };
  const complain = (error) => {
    $("alert").textContent = error ? (error.message || String(error)) : "";
    if (error) $("alert").scrollIntoView({ block: "nearest" });
  };
  const guarded = (work) => async (...given) => {
    complain(null);
    try { return await work(...given); } catch (error) { complain(error); }
  };

  // --- views -----------------------------------------------------------------------------------------------
  const show = (view, focus = true) => {
    state.view = view;
    for (const name of ["start", "setup", "run"]) $(name).hidden = name !== view;
    if (view !== "run" && state.source) { state.source.close(); state.source = null; }
    drawTabs();
    if (focus) {
      const heading = $(`${view}-h`);
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  };

  const SIGNS = { waiting: "…", running: "●", stopping: "●", done: "✓", failed: "✗", unfinished: "○", elsewhere: "●" };
  const drawTabs = () => {
    const list = $("run-list");
    const focused = document.activeElement && document.activeElement.id;
    for (const item of all("li[data-made]", list)) item.remove();
    const add = (id, text, current, work) => {
      const item = document.createElement("li");
      item.dataset.made = "1";
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "tab", id, textContent: text });
      if (current) button.setAttribute("aria-current", "page");
      button.addEventListener("click", work);
      item.append(button);
      list.append(item);
    };
    if (state.table) add("tab-table", state.table.name, state.view === "setup", () => show("setup"));
    state.runs.slice(-12).forEach((run) => {
      const number = state.runs.filter((one) => one.name === run.name).indexOf(run) + 1;
      const text = `${SIGNS[run.state]} ${run.name.replace(/\.[a-z]+$/i, "")} ${number}`;
      add(`tab-${run.id}`, text, state.view === "run" && state.run && state.run.id === run.id, guarded(() => openRun(run.id)));
    });
    const start = all('[data-view="start"]')[0];
    if (state.view === "start") start.setAttribute("aria-current", "page");
    else start.removeAttribute("aria-current");
    if (focused && $(focused) && document.activeElement === document.body) $(focused).focus();
  };
  const readRuns = async () => { state.runs = await json(ask("/api/runs")); drawTabs(); };

  // --- tables ----------------------------------------------------------------------------------------------
  const upload = guarded(async (content, name) => {
    if (content.size > Number(limit)) throw new Error("this table is larger than what can be read");
    say("Reading the table");
    const made = await json(ask("/api/tables", { method: "POST", body: content, headers: { "x-table-name": encodeURIComponent(name) } }));
    await openTable({ id: made.table, name: made.name }, null);
    say("");
  });

  const EXAMPLE = "planet,a,T\nMercury,0.38709927,0.2408467\nVenus,0.72333566,0.61519726\nEarth,1.00000261,1.0000174\n" +
    "Mars,1.52371034,1.8808476\nJupiter,5.20288700,11.862615\nSaturn,9.53667594,29.447498\nUranus,19.18916464,84.016846\n" +
    "Neptune,30.06992276,164.79132\n";

  const openTable = async (table, settings) => {
    state.table = table;
    $("setup-h").textContent = table.name;
    const reading = (settings && settings.reading) || {};
    $("o-header").value = reading.header === true ? "yes" : reading.header === false ? "no" : "";
    $("o-delimiter").value = reading.delimiter === "\t" ? "tab" : reading.delimiter || "";
    $("o-encoding").value = reading.encoding || "";
    $("o-thousands").value = reading.thousands || "";
    $("o-units-row").checked = Boolean(reading.units_row);
    $("o-constants").value = (settings && settings.constants) || "";
    $("o-guesses").value = ((settings && settings.guesses) || []).join("\n");
    $("o-template").value = (settings && settings.template) || "";
    $("o-constraints").value = (settings && settings.constraints) || "";
    $("o-time").value = (settings && settings.time) || 60;
    $("o-seed").value = (settings && settings.seed) || 0;
    $("prior").open = ["constants", "guesses", "template", "constraints"].some((name) => $(`o-${name}`).value);
    $("read").replaceChildren();
    show("setup");
    await readSetup(settings || { reading: readingOptions() });
  };

  const readingOptions = () => {
    const delimiter = $("o-delimiter").value;
    return {
      header: { yes: true, no: false }[$("o-header").value] ?? null,
      delimiter: delimiter === "tab" ? "\t" : delimiter || null,
      encoding: $("o-encoding").value.trim() || null,
      thousands: $("o-thousands").value || null,
      units_row: $("o-units-row").checked,
    };
  };

  const collected = () => {
    const rows = all("#read tr[data-column]");
    const named = (role) => rows.filter((row) => row.querySelector(".role").value === role).map((row) => row.dataset.column);
    const units = {};
    for (const row of rows) {
      const unit = row.querySelector(".unit").value.trim();
      if (unit && ["target", "input"].includes(row.querySelector(".role").value)) units[row.dataset.column] = unit;
    }
    const asked = $("o-units-row").checked ? {} : units;
    return {
      reading: readingOptions(),
      target: named("target")[0] ?? null,
      // Without a number left aside they need not be named.
      inputs: rows.some((row) => row.dataset.numbers && row.querySelector(".role").value === "unused") ? named("input") : null,
      groups: named("group"),
      weights: named("weights")[0] ?? null,
      errors: named("errors")[0] ?? null,
      units: asked,
      constants: $("o-constants").value.trim(),
      guesses: $("o-guesses").value.split("\n").map((line) => line.trim()).filter(Boolean),
      template: $("o-template").value.trim(),
      constraints: $("o-constraints").value.trim(),
      time: Number($("o-time").value),
      seed: Number($("o-seed").value),
    };
  };

  const readSetup = async (settings) => {
    const asked = ++state.asked;
    $("read").setAttribute("aria-busy", "true");
    try {
      const { html: content } = await json(post(`/api/tables/${state.table.id}/setup`, settings));
      if (asked !== state.asked) return;
      const focused = document.activeElement && document.activeElement.id;
      $("read").innerHTML = content;
      if (focused && $(focused)) $(focused).focus();
    } finally {
      $("read").setAttribute("aria-busy", "false");
    }
  };

  const roleChanged = guarded(async (select) => {
    // One target, one column of weights: the one that had this role gives it up.
    const single = ["target", "weights", "errors"];
    if (single.includes(select.value)) {
      for (const other of all("#read .role")) {
        if (other !== select && other.value === select.value) other.value = select.value === "target" ? "input" : "unused";
      }
    }
    await readSetup(collected());
  });

  const begin = guarded(async () => {
    const made = await json(post("/api/runs", { table: state.table.id, settings: collected() }));
    await readRuns();
    await openRun(made.id);
  });

  // --- runs ------------------------------------------------------------------------------------------------
  const openRun = async (id) => {
    const run = await json(ask(`/api/runs/${id}`));
    if (state.source) { state.source.close(); state.source = null; }
    Object.assign(state, { run, row: null, drawn: "" });
    $("comparison").replaceChildren();
    $("panel").replaceChildren();
    $("guess").value = "";
    $("more").value = run.limit;
    $("run-h").textContent = run.name;
    $("command").textContent = run.command;
    show("run");
    update(run);
    if (ACTIVE.includes(run.state)) watch(id);
  };

  const watch = (id) => {
    const source = new EventSource(address(`/api/runs/${id}/events`));
    state.source = source;
    source.onmessage = (event) => {
      const run = JSON.parse(event.data);
      if (!state.run || state.run.id !== run.id) return source.close();
      complain(null);
      Object.assign(state.run, run);
      if (!ACTIVE.includes(run.state)) { source.close(); readRuns(); }
      update(state.run);
    };
    source.onerror = () => complain(new Error("physdiffuser does not answer. The search goes on if the program was not ended; what it finds is in its run folder."));
  };

  const seconds = (value) => `${Math.round(value)} s`;
  const STATES = {
    waiting: () => "Waits for another search to end",
    running: (run) => `Searching: ${seconds(run.elapsed)} of at most ${seconds(run.limit)}`,
    stopping: () => "Stopping",
    done: (run) => (run.elapsed ? `Done in ${seconds(run.elapsed)}` : "Done"),
    failed: (run) => `Failed: ${run.message}`,
    unfinished: () => "Stopped before its end; it can be continued",
    elsewhere: () => "Runs on, started by an earlier page",
  };

  const update = (run) => {
    const active = ACTIVE.includes(run.state);
    const text = STATES[run.state](run);
    if ($("status").textContent !== text) $("status").textContent = text;
    $("status").dataset.state = run.state;
    $("progress").hidden = !active;
    $("progress").value = Math.min(1, run.elapsed / run.limit);
    const buttons = (action) => all(`#run-buttons [data-action="${action}"]`)[0];
    buttons("stop").hidden = !["waiting", "running"].includes(run.state);
    buttons("continue").parentElement.hidden = active || run.state === "failed";
    buttons("undo").hidden = !run.can_undo && !run.earlier;
    buttons("again").hidden = active;
    $("guess-form").hidden = run.state === "failed" && !run.earlier;
    const listed = state.runs.find((one) => one.id === run.id);
    if (listed && listed.state !== run.state) { listed.state = run.state; drawTabs(); }
    const drawn = `${run.id} ${run.version} ${run.state} ${state.row} ${run.pins.join("\n")} ${run.selected}`;
    if (drawn !== state.drawn) { state.drawn = drawn; drawPanel(run).catch(complain); }
    drawResult(run);
  };

  const drawPanel = async (run) => {
    const content = await html(ask(`/api/runs/${run.id}/panel${state.row ? `?row=${state.row}` : ""}`));
    if (!state.run || state.run.id !== run.id) return;
    const focused = document.activeElement && $("panel").contains(document.activeElement) ? document.activeElement : null;
    const ticked = all("#panel .compare:checked").map((box) => box.id);
    const scrolled = all("#panel .scroll").map((box) => box.scrollLeft);
    $("panel").innerHTML = content;
    fitFormulas();
    all("#panel .scroll").forEach((box, place) => { box.scrollLeft = scrolled[place] || 0; });
    for (const id of ticked) if ($(id)) $(id).checked = true;
    if (focused) {
      const { action, row } = focused.dataset;
      const again = (focused.id && $(focused.id)) || (action && all(`#panel [data-action="${action}"]${row ? `[data-row="${row}"]` : ""}`)[0]) ||
        (action && all("#panel [data-action]")[0]);
      if (again) again.focus({ preventScroll: true });
    }
  };

  const DOWNLOADS = [["folder", "Everything (ZIP)"], ["notebook", "Notebook"], ["python", "Python"], ["c", "C"], ["latex", "LaTeX"]];
  const drawResult = (run) => {
    const shown = run.has_result;
    if ($("result").hidden === !shown && $("report").dataset.run === run.id) return;
    $("result").hidden = !shown;
    $("report").dataset.run = run.id;
    if (!shown) { $("report").removeAttribute("src"); return; }
    $("report").src = address(`/api/runs/${run.id}/report`);
    $("report-link").href = address(`/api/runs/${run.id}/report`);
    $("downloads").replaceChildren(...DOWNLOADS.map(([kind, label]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      Object.assign(link, { href: address(`/api/runs/${run.id}/download/${kind}`), textContent: label, className: "button", download: "" });
      item.append(link);
      return item;
    }));
  };

  const mark = async (change) => {
    Object.assign(state.run, await json(post(`/api/runs/${state.run.id}/marks`, change)));
    update(state.run);
  };

  const go_on = async (guess) => {
    const content = { time: Number($("more").value) };
    if (guess) content.guess = guess;
    say(ACTIVE.includes(state.run.state) ? "Stopping the search, then starting again" : "Continuing");
    const made = await json(post(`/api/runs/${state.run.id}/continue`, content));
    await readRuns();
    await openRun(made.id);
  };

  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); say("Copied"); } catch { say("Select the text and press Ctrl+C"); }
  };

  const compare = guarded(async () => {
    const rows = all("#panel .compare:checked").map((box) => box.value);
    if (rows.length < 2) { $("comparison").replaceChildren(); return; }
    $("comparison").innerHTML = await html(ask(`/api/runs/${state.run.id}/compare?a=${rows[0]}&b=${rows[1]}`));
    say("Compared below");
  });

  const ACTIONS = {
    stop: () => post(`/api/runs/${state.run.id}/stop`, {}),
    continue: () => go_on(null),
    again: () => openTable({ id: state.run.table, name: state.run.name }, state.run.settings),
    undo: async () => (state.run.can_undo ? mark({ undo: true }) : openRun(state.run.earlier)),
    pin: (button) => mark({ pin: button.dataset.formula }),
    unpin: (button) => mark({ unpin: button.dataset.formula }),
    select: (button) => mark({ select: Number(button.dataset.row) }),
    edit: (button) => { $("guess").value = button.dataset.formula; $("guess").focus(); },
    show: (button) => { state.row = Number(button.dataset.row); update(state.run); },
    copy: () => copy($("command").textContent),
    "copy-law": () => copy($("law-text").textContent),
    "end-comparison": () => { for (const box of all("#panel .compare:checked")) box.checked = false; $("comparison").replaceChildren(); },
  };

  // --- events ----------------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (button) { guarded(ACTIONS[button.dataset.action])(button); return; }
    if (event.target.closest('[data-view="start"]')) { show("start"); return; }
    const spot = event.target.closest("#panel a.spot");
    if (spot) { event.preventDefault(); ACTIONS.show(spot); return; }
    const row = event.target.closest("#panel .front-table tbody tr");
    if (row && !event.target.closest("button, input")) ACTIONS.show(row);
  });
  document.addEventListener("change", (event) => {
    const target = event.target;
    if (target.matches("#read .role")) roleChanged(target);
    else if (target.id.startsWith("o-") && target.closest("details") && !target.closest("#prior")) {
      guarded(() => readSetup({ reading: readingOptions() }))();
    } else if (target.matches(".compare")) {
      const others = all("#panel .compare:checked").filter((box) => box !== target);
      if (others.length > 1) others[0].checked = false;
      compare();
    }
  });
  $("file").addEventListener("change", () => { if ($("file").files[0]) upload($("file").files[0], $("file").files[0].name); $("file").value = ""; });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) upload(file, file.name);
  });
  document.addEventListener("paste", (event) => {
    if (state.view !== "start" || event.target.closest("input, textarea")) return;
    const text = event.clipboardData.getData("text/plain");
    if (text.trim()) upload(new Blob([text]), "pasted.tsv");
  });
  $("paste-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("paste").value.trim()) upload(new Blob([$("paste").value]), "pasted.tsv");
    else complain(new Error("paste some cells first"));
  });
  $("example").addEventListener("click", () => upload(new Blob([EXAMPLE]), "planets.csv"));
  $("setup-form").addEventListener("submit", (event) => { event.preventDefault(); begin(); });
  $("guess-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const formula = $("guess").value.trim();
    if (formula) guarded(go_on)(formula);
    else complain(new Error("write a formula first"));
  });

  guarded(async () => {
    await readRuns();
    if (opened) await openTable({ id: opened, name: "table" }, null);
    else {
      const going = state.runs.filter((run) => ACTIVE.includes(run.state)).pop();
      if (going) await openRun(going.id);
    }
  })();
})();
