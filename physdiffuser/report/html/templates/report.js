(() => {
  const page = document.documentElement;
  page.classList.remove("no-script");
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const laws = all("article.panel");
  const marks = all(".spot, .front-table tbody tr");
  const preview = document.getElementById("preview");
  const announcement = document.getElementById("announcement");
  const chosen = all(".front-table tr.chosen")[0] || all(".front-table tbody tr")[0];
  const numbers = laws.map((law) => Number(law.dataset.row));
  let shown = 0;

  const describe = (row) => {
    const spot = all(`.spot[data-row="${row}"]`)[0];
    return spot ? spot.getAttribute("aria-label") : "";
  };

  const show = (row, announce) => {
    if (!numbers.includes(row)) return;
    shown = row;
    for (const law of laws) law.hidden = Number(law.dataset.row) !== row;
    for (const mark of marks) mark.classList.toggle("shown", Number(mark.dataset.row) === row);
    for (const link of all("a.pick")) {
      if (Number(link.dataset.row) === row) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    preview.textContent = describe(row);
    fitFormulas();
    if (announce) announcement.textContent = "Shown: " + describe(row);
  };

  const hover = (row) => {
    for (const mark of marks) mark.classList.toggle("hovered", Number(mark.dataset.row) === row);
    preview.textContent = describe(row || shown);
  };

  const rowOf = (target) => {
    const mark = target.closest("[data-row]");
    return mark && !mark.matches("article") ? Number(mark.dataset.row) : 0;
  };

  const front = document.getElementById("front");
  if (front && laws.length) {
    front.addEventListener("click", (event) => {
      const row = rowOf(event.target);
      if (!row) return;
      event.preventDefault();
      show(row, true);
    });
    front.addEventListener("pointerover", (event) => hover(rowOf(event.target)));
    front.addEventListener("pointerleave", () => hover(0));
    front.addEventListener("focusin", (event) => hover(rowOf(event.target)));
    front.addEventListener("keydown", (event) => {
      const row = rowOf(event.target);
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!row || !step) return;
      const next = numbers[numbers.indexOf(row) + step];
      if (next === undefined) return;
      event.preventDefault();
      const kind = event.target.closest(".spot") ? ".spot" : "a.pick";
      show(next, true);
      all(`${kind}[data-row="${next}"]`)[0].focus();
    });
    const wanted = /^#law-(\d+)$/.exec(window.location.hash);
    show(wanted && numbers.includes(Number(wanted[1])) ? Number(wanted[1]) : Number(chosen.dataset.row), false);
  }

  const toast = document.getElementById("copied");
  let clearing = 0;
  const say = (text) => {
    toast.textContent = text;
    clearTimeout(clearing);
    clearing = setTimeout(() => { toast.textContent = ""; }, 2500);
  };

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };

  const copyAnyway = (text) => {
    // Where the page may not use the clipboard, an old command may.
    const box = document.createElement("textarea");
    box.value = text;
    box.setAttribute("aria-hidden", "true");
    box.className = "hidden";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  };

  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        say("Copied");
      } catch {
        const done = copyAnyway(source.textContent);
        button.focus();
        if (done) say("Copied");
        else { select(source); say("Selected: press Ctrl+C to copy"); }
      }
    });
  }
})();
