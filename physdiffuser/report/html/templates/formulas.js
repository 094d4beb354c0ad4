"use strict";
/* A formula wider than its place is drawn smaller, down to a size that can still be read; then it scrolls. */
const fitFormulas = (() => {
  const LEAST = 8;
  const TRIES = 3;
  const fit = () => {
    for (const formula of document.querySelectorAll(".formula")) {
      formula.style.fontSize = "";
      // Glyphs do not grow in proportion in all browsers: once is not always enough.
      for (let tries = 0; tries < TRIES; tries += 1) {
        const share = formula.clientWidth / formula.scrollWidth;
        if (!(share > 0 && share < 1)) break;
        const size = parseFloat(getComputedStyle(formula).fontSize);
        formula.style.fontSize = `${Math.max(Math.floor(size * share * 0.98 * 10) / 10, Math.min(LEAST, size))}px`;
      }
    }
  };
  const plain = () => { for (const formula of document.querySelectorAll(".formula")) formula.style.fontSize = ""; };
  addEventListener("load", fit);
  addEventListener("resize", fit);
  addEventListener("beforeprint", plain);
  addEventListener("afterprint", fit);
  document.addEventListener("toggle", fit, true);
  document.fonts.ready.then(fit);
  return fit;
})();
