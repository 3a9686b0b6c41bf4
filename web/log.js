"use strict";
// A job's output as it is written (src/web/panel_log.c), with search, a pause and wrapping.  At most `most` lines
// are kept; earlier ones are a link away.
(() => {
  const lines = document.getElementById("log-lines");
  const bar = document.querySelector(".logbar");
  if (!lines || !bar) return;
  const most = 5000;
  const state = document.getElementById("log-state");
  const search = document.getElementById("log-search");
  const pause = document.getElementById("log-pause");
  const wrap = document.getElementById("log-wrap");
  // What changes how a text looks, or is not seen: the same as web/html does away with.
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ue000-\uf8ff\ufff9-\ufffb]|[\u{e0000}-\u{10ffff}]/gu;
  const escapes = /\u001b(?:\[[\u0020-\u003f]*[\u0040-\u007e]?|\][^\u0007\u001b]*(?:\u0007|\u001b.)?|[^[\]])/gu;

  function say(text) {
    if (state.textContent !== text) state.textContent = text;
  }

  // ---- lines ----
  let open = "open" in lines.dataset ? lines.lastElementChild : null; // the line that has not ended
  let raw = open ? open.textContent.replace(/\n$/, "") : "";

  function shown(text) {
    return text.replace(escapes, "").replace(unseen, "\ufffd");
  }

  function mark(span) {
    const text = span.textContent, wanted = search.value.toLowerCase();
    const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
    span.hidden = wanted !== "" && at < 0;
    if (at < 0) {
      if (span.firstElementChild) span.textContent = text;
      return !span.hidden;
    }
    const found = document.createElement("mark");
    found.textContent = text.slice(at, at + wanted.length);
    span.replaceChildren(text.slice(0, at), found, text.slice(at + wanted.length));
    return true;
  }

  function put(text) {
    if (!open) {
      open = document.createElement("span");
      lines.append(open);
      raw = "";
    }
    raw += text;
    document.getElementById("log-empty")?.remove();
    open.textContent = shown(raw) + "\n";
    if (search.value) mark(open);
  }

  function bound() {
    while (lines.childElementCount > most) lines.firstElementChild.remove();
  }

  let held = ""; // of the last piece: a lone "\r", which a "\n" may follow
  function add(text) {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    const pieces = (held + text).split(/\r\n|\n|\r(?!$)/);
    held = "";
    if (pieces.at(-1).endsWith("\r")) {
      pieces[pieces.length - 1] = pieces.at(-1).slice(0, -1);
      held = "\r";
    }
    pieces.forEach((piece, i) => {
      if (piece || i < pieces.length - 1) put(piece);
      if (i < pieces.length - 1) open = null;
    });
    bound();
    if (atEnd) lines.scrollTop = lines.scrollHeight;
    count();
  }

  // ---- search ----
  function count() {
    if (!search.value) return;
    const all = [...lines.children], found = all.filter((s) => !s.hidden).length;
    say(`${found} of the ${all.length} lines here`);
  }

  search.addEventListener("input", () => {
    for (const span of lines.children) mark(span);
    if (search.value) count(); else say(source ? "Live" : "");
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !search.value) return;
    search.value = "";
    search.dispatchEvent(new Event("input"));
  });

  wrap.addEventListener("click", () => {
    const on = wrap.getAttribute("aria-pressed") !== "true";
    wrap.setAttribute("aria-pressed", String(on));
    lines.classList.toggle("wrapped", on);
  });

  // ---- following ----
  let source = null, offset = lines.dataset.follow, retry = 1000;

  function close() {
    source?.close();
    source = null;
  }

  function text(event) {
    const data = JSON.parse(event.data);
    if (data.text !== undefined) return data.text;
    const bytes = Uint8Array.from(atob(data.base64), (c) => c.charCodeAt(0));
    return new TextDecoder().decode(bytes);
  }

  function again(words) {
    close();
    say(words);
    setTimeout(() => { if (pause.getAttribute("aria-pressed") !== "true") follow(); }, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, 30000);
  }

  function over(words) {
    close();
    offset = undefined;
    pause.hidden = true;
    say(words);
  }

  // A page that is not looked at has no stream: browsers open six to a site, for all of its pages.
  function follow() {
    if (source || offset === undefined || document.hidden) return;
    source = new EventSource(`/jobs/${lines.dataset.job}/log/live?member=${lines.dataset.member}&offset=${offset}`);
    source.onopen = () => { retry = 1000; if (!search.value) say("Live"); };
    source.addEventListener("log", (event) => {
      offset = event.lastEventId;
      add(text(event));
    });
    source.addEventListener("end", (event) => over(`It has ended: ${JSON.parse(event.data).state}.`));
    source.addEventListener("denied", () => over("You may not read it any more: reload the page."));
    source.addEventListener("over", () => over("Your session has ended: reload to sign in again."));
    source.addEventListener("crowded", (event) => again(JSON.parse(event.data).text));
    source.onerror = () => again("Not connected. Trying again.");
  }

  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) { close(); say("Paused"); } else { follow(); }
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close(); else if (pause.getAttribute("aria-pressed") !== "true") follow();
  });

  bar.hidden = false;
  lines.scrollTop = lines.scrollHeight;
  if (offset === undefined) pause.hidden = true; else follow();
})();
