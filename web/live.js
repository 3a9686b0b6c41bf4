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
      const minute = /T\d\d:\d\dZ$/.test(time.dateTime); // said to the minute, shown to the minute
      const how = minute ? { hour: "numeric", minute: "2-digit" } : { hour: "numeric", minute: "2-digit", second: "2-digit" };
      time.textContent = at.toDateString() === now ? at.toLocaleTimeString([], how)
        : at.toLocaleString([], { year: "numeric", month: "numeric", day: "numeric", ...how });
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

  let source = null, retry = 1000, over = false, heard = 0;
  const quiet = 40000; // the service says something every 15 s
  const state = document.getElementById("live");
  const button = state?.querySelector("button");
  const word = state?.querySelector("[role=status]");

  function say(text) {
    if (word && word.textContent !== text) word.textContent = text;
  }

  function close() {
    clearTimeout(heard);
    source?.close();
    source = null;
  }

  // Not the browser's own retry: that would say again what the page had at first.  Not all pages at once, when a
  // daemon is back.
  function again(words) {
    close();
    say(words);
    setTimeout(() => { if (!paused()) open(); }, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, 30000);
  }

  function paused() {
    return button?.getAttribute("aria-pressed") === "true";
  }

  function hear() {
    clearTimeout(heard);
    heard = setTimeout(() => again("Nothing heard: this is as it was. Trying again."), quiet);
  }

  // A page that is not looked at has no stream: browsers open six to a site, for all of its pages.
  function open() {
    if (source || over || document.hidden || sections().length === 0) return;
    const have = sections().filter((s) => !s.hidden).map((s) => `${s.id}:${s.querySelector(":scope > data")?.value ?? "0"}`).join(",");
    const page = location.pathname + location.search;
    source = new EventSource(`/live?page=${encodeURIComponent(page)}&have=${have}`);
    hear();
    source.addEventListener("live", () => { retry = 1000; hear(); say("Live"); });
    source.addEventListener("panel", (event) => {
      hear();
      const { id, html } = JSON.parse(event.data);
      replace(id, html);
    });
    source.addEventListener("over", () => {
      over = true;
      close();
      for (const panel of document.querySelectorAll("main .panel")) { // whoever comes next may not read it
        panel.replaceChildren();
        panel.hidden = true;
      }
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
    const pause = !paused();
    button.setAttribute("aria-pressed", String(pause));
    if (pause) { close(); say("Paused"); } else { open(); }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close(); else if (!paused()) open();
  });
  open();
})();
