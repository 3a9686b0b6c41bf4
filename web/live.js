"use strict";
// Moments in the reader's zone, and sections that stay up to date (src/web/live.c).
(() => {
  const policy = window.trustedTypes?.createPolicy("bulkhead", { createHTML: (html) => html });
  const parser = new DOMParser();

  // The server's clock: the reader's may be wrong.
  const told = document.querySelector("meta[name=now]")?.content;
  const skew = told ? Date.parse(told) - Date.now() : 0;

  function localize(root) {
    const now = new Date(Date.now() + skew).toDateString();
    for (const time of root.querySelectorAll("time")) {
      time.dateTime ||= time.textContent; // the page says it once
      time.title = time.dateTime;
      const at = new Date(time.dateTime);
      time.textContent = at.toDateString() === now ? at.toLocaleTimeString() : at.toLocaleString();
    }
  }

  function sections() {
    return [...document.querySelectorAll("[data-live]")];
  }

  // What has the focus, in the new section: the same link or button; else what is in its place.
  function successor(old, fresh, focused) {
    const stops = (root) => [...root.querySelectorAll("a,button,summary,[tabindex]")];
    const name = (e) => e.getAttribute("href") ?? e.getAttribute("aria-label") ?? e.textContent;
    const same = (root) => stops(root).filter((e) => name(e) === name(focused));
    return same(fresh)[same(old).indexOf(focused)] ?? same(fresh)[0] ?? stops(fresh)[stops(old).indexOf(focused)];
  }

  // Put the new section in the old one's place; what is open stays open, the focus where it was.
  function replace(id, html) {
    const old = document.getElementById(id);
    if (old && !html) { // it may not be seen any more; its place stays
      old.replaceChildren();
      old.hidden = true;
      return;
    }
    const fresh = parser.parseFromString(policy ? policy.createHTML(html) : html, "text/html").body.firstElementChild;
    if (!old || !fresh) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (focused && /^(INPUT|SELECT|TEXTAREA)$/.test(focused.tagName)) return;
    const open = [...old.querySelectorAll("details")].map((d) => d.open);
    fresh.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
    localize(fresh);
    const wide = [...old.querySelectorAll(".wide")].map((w) => w.scrollLeft);
    const next = focused && successor(old, fresh, focused);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".wide").forEach((w, i) => { w.scrollLeft = wide[i] ?? 0; });
    next?.focus({ preventScroll: true });
  }

  let source = null, retry = 1000;
  const state = document.getElementById("live");
  const button = state?.querySelector("button");
  const word = state?.querySelector("[role=status]");

  function say(text) {
    if (word && word.textContent !== text) word.textContent = text;
  }

  function close() {
    source?.close();
    source = null;
  }

  // Not the browser's own retry: that would say again what the page had at first.  Not all pages at once, when a
  // daemon is back.
  function again(words) {
    close();
    say(words);
    setTimeout(() => { if (button?.getAttribute("aria-pressed") !== "true") open(); }, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, 30000);
  }

  function open() {
    if (source || sections().length === 0) return;
    const have = sections().filter((s) => !s.hidden).map((s) => `${s.id}:${s.querySelector(":scope > data")?.value ?? "0"}`).join(",");
    const page = location.pathname + location.search;
    source = new EventSource(`/live?page=${encodeURIComponent(page)}&have=${have}`);
    source.addEventListener("live", () => { retry = 1000; say("Live"); });
    source.addEventListener("panel", (event) => {
      const { id, html } = JSON.parse(event.data);
      replace(id, html);
    });
    source.addEventListener("over", () => {
      close();
      say("Your session has ended: reload to sign in again.");
      if (button) button.hidden = true;
    });
    source.addEventListener("crowded", (event) => again(`${JSON.parse(event.data).text} This is as it was.`));
    source.onerror = () => again("Not connected: this is as it was. Trying again.");
  }

  localize(document);
  if (!state || sections().length === 0) return;
  state.hidden = false;
  button.addEventListener("click", () => {
    const paused = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(paused));
    if (paused) { close(); say("Paused"); } else { open(); }
  });
  open();
})();
