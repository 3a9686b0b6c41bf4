// A browser that tests/lib/driven.py drives, by puppeteer-core: reads deeds as lines of JSON, answers each
// with a line of JSON.  It observes; what is right is said in tests/web/pages.py.
//
//   node pages.mjs MODULES '{"browser": "chromium" | "firefox", "program": PATH, "trust": DIGEST, "plain": BOOLEAN,
//                           "scheme": "dark" | "light"}'
//
// `plain` is a browser that neither runs scripts nor shows pictures.  What is put into a page for judging it goes
// there by the debugger, into a world of its own: the page's content policy stays in force.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";

const load = createRequire(process.argv[2] + "/");
const puppeteer = load("puppeteer-core");
const axe = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
const options = JSON.parse(process.argv[3]);
const pages = new Map();

const CHROMIUM = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", "--mute-audio",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"];

function launch() {
  if (options.browser === "firefox") {
    // What readers prefer is Firefox's to know from its start on: WebDriver BiDi has no word for it.
    const prefers = { "layout.css.prefers-color-scheme.content-override": options.scheme === "dark" ? 0 : 1,
      "ui.prefersReducedMotion": options.scheme === "dark" ? 1 : 0 };
    const plain = options.plain ? { "javascript.enabled": false, "permissions.default.image": 2 } : {};
    return puppeteer.launch({ browser: "firefox", executablePath: options.program, acceptInsecureCerts: true,
      protocolTimeout: 60000, extraPrefsFirefox: { ...prefers, ...plain } });
  }
  const args = [...CHROMIUM, `--ignore-certificate-errors-spki-list=${options.trust}`];
  if (process.getuid() === 0) args.push("--no-sandbox");  // it refuses to run as root with one
  if (options.plain) args.push("--blink-settings=imagesEnabled=false,scriptEnabled=false");
  return puppeteer.launch({ executablePath: options.program, args, pipe: true, protocolTimeout: 60000 });
}

// Runs in each page before anything else: what the policy refused, and what moved.
function watch() {
  window.__refused = [];
  window.__moved = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.__refused.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
  });
  const name = (node) => node?.nodeType === 1 ? node.outerHTML.slice(0, 80) : node?.parentElement?.outerHTML.slice(0, 80) ?? "gone";
  if (PerformanceObserver.supportedEntryTypes.includes("layout-shift")) {
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (!entry.hadRecentInput)
          window.__moved.push(`${entry.value.toFixed(4)} ${entry.sources.map((s) => name(s.node)).join(" | ")}`);
      }
    }).observe({ type: "layout-shift", buffered: true });
  }
}

// ---- what is asked of a page ----

// Everything that a keyboard has to reach, in the order of the document.
function begin_stops() {
  const all = "a[href],button,input,select,textarea,summary,[tabindex]";
  const radios = new Set();
  window.__stops = [...document.querySelectorAll(all)].filter((e) => {
    if (e.disabled || e.type === "hidden" || e.tabIndex < 0 || !e.checkVisibility({ visibilityProperty: true })) return false;
    if (e.type !== "radio") return true;
    const first = !radios.has(e.name);
    radios.add(e.name);
    return first;
  });
  window.__visited = [];
  const visit = (element) => {
    const style = getComputedStyle(element);
    let at = window.__stops.indexOf(element);
    if (at < 0 && element.type === "radio") at = window.__stops.findIndex((e) => e.name === element.name);
    if (at >= 0) window.__visited.push([at, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2]);
  };
  document.addEventListener("focusin", (event) => visit(event.target));
  if (document.hasFocus()) visit(document.activeElement); // a field that wants to be first
  return window.__stops.map((e) => e.outerHTML.slice(0, 100));
}

// What watches sizes, such as a chart, has seen them once a frame was painted.
function painted() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

const asked = {
  content: () => {
    const text = (selector) => [...document.querySelectorAll(selector)].map((e) => e.innerText.trim());
    return { title: document.title, headings: text("h1,h2,h3"), text: document.body.innerText,
      hrefs: [...document.querySelectorAll("a[href]")].map((e) => e.getAttribute("href")),
      path: location.pathname + location.search,
      buttons: [...document.querySelectorAll("form:not([data-passkey])")].map((form) => ({
        action: form.getAttribute("action"), seen: [...form.querySelectorAll("button,input[type=submit]")].some((b) => b.checkVisibility()) })) };
  },
  trouble: () => ({ refused: window.__refused ?? [], moved: window.__moved ?? [] }),
  layout: () => ({
    wide: document.documentElement.scrollWidth, room: document.documentElement.clientWidth,
    moving: document.getAnimations().filter((a) => a.playState === "running").length,
    cut: [...document.querySelectorAll("main *, header *, footer *")].filter((e) =>
      e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".wide") && e.checkVisibility())
      .map((e) => e.outerHTML.slice(0, 100)).slice(0, 5),
    clipped: [...document.querySelectorAll(".wide")].filter((e) => e.scrollWidth > e.clientWidth + 1)
      .map((e) => e.getAttribute("aria-label")) }),
};

// ---- deeds ----

// Firefox refuses a "__Host-" cookie by WebDriver; from a page of the site it takes one.
async function sign_in(page, origin, session) {
  if (options.browser !== "firefox") {
    await page.setCookie({ name: "__Host-bulkhead", value: session, url: origin, secure: true, httpOnly: true, path: "/" });
    return;
  }
  await page.goto(`${origin}/signedout`);
  await page.evaluate((value) => { document.cookie = `__Host-bulkhead=${value}; Secure; Path=/; SameSite=Lax`; }, session);
}

function attend(page, origin) {
  const kept = { page, faults: [], foreign: [], asked: 0 };
  page.on("console", (message) => {
    if (message.type() === "error") kept.faults.push(`${message.text()} ${message.location()?.url ?? ""}`);
  });
  page.on("pageerror", (error) => kept.faults.push(error.message));
  page.on("dialog", (dialog) => { kept.faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    kept.asked++;
    if (!/^(data|blob|about):/.test(request.url()) && new URL(request.url()).origin !== origin) kept.foreign.push(request.url());
  });
  return kept;
}

const deeds = {
  async open(browser, { origin, session, zone }) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    if (session) await sign_in(page, origin, session);
    if (!options.plain) await page.evaluateOnNewDocument(watch);
    if (zone) await page.emulateTimezone(zone);
    const number = pages.size + 1;
    pages.set(number, attend(page, origin));
    return number;
  },
  async go(_, { page, address, width = 1280 }) {
    const kept = pages.get(page);
    Object.assign(kept, { faults: [], foreign: [], asked: 0 });
    if (kept.width !== width) await kept.page.setViewport({ width, height: 900 });
    kept.width = width;
    const reply = await kept.page.goto(address, { waitUntil: "load" });
    return reply?.status() ?? 0;
  },
  // Width, and what the reader prefers: {"prefers-color-scheme": "dark"}.
  async show(_, { page, width, features = {}, medium }) {
    const kept = pages.get(page);
    if (width && kept.width !== width) await kept.page.setViewport({ width, height: 900 });
    kept.width = width ?? kept.width;
    if (options.browser !== "firefox") {
      await kept.page.emulateMediaFeatures(Object.entries(features).map(([name, value]) => ({ name, value })));
      if (medium !== undefined) await kept.page.emulateMediaType(medium || undefined);
    }
    if (!options.plain) await kept.page.evaluate(painted);
  },
  async ask(_, { page, what }) {
    return pages.get(page).page.evaluate(asked[what]);
  },
  async trouble(_, { page }) {
    const kept = pages.get(page);
    const there = options.plain ? { refused: [], moved: [] } : await kept.page.evaluate(asked.trouble);
    return { faults: kept.faults, foreign: kept.foreign, asked: kept.asked, ...there };
  },
  async axe(_, { page, rules }) {
    const world = pages.get(page).page.mainFrame().isolatedRealm();
    const run = rules ? { runOnly: rules } : {};
    await world.evaluate(`globalThis.axe || (() => { ${axe} })()`);
    return world.evaluate(async (run) => {
      const found = await globalThis.axe.run(document, { resultTypes: ["violations"], ...run });
      return found.violations.map((v) => `${v.id}: ${v.nodes.length} x ${v.nodes[0].html.slice(0, 160)} (${v.nodes[0].failureSummary?.split("\n").slice(1, 3).join("; ")})`);
    }, run);
  },
  async tab(_, { page }) {
    const kept = pages.get(page);
    await kept.page.bringToFront();
    const stops = await kept.page.evaluate(begin_stops);
    const presses = [];
    for (let i = 0; i < stops.length + 12; i++) presses.push(kept.page.keyboard.press("Tab"));
    await Promise.all(presses);
    return { stops, visited: await kept.page.evaluate(() => window.__visited) };
  },
  async run(_, { page, code }) {
    return pages.get(page).page.evaluate(code);
  },
  async until(_, { page, code, wait_s }) {
    const handle = await pages.get(page).page.waitForFunction(code, { timeout: wait_s * 1000, polling: 50 });
    return handle.jsonValue();
  },
  async press(_, { page, selector }) {
    await pages.get(page).page.click(selector);
  },
  // Press by the keyboard, and wait for the page that comes of it: a click looks first whether the element is in
  // view, which Firefox does not say without scripts.
  async follow(_, { page, selector }) {
    const { page: tab } = pages.get(page);
    await tab.focus(selector);
    await Promise.all([tab.waitForNavigation({ waitUntil: "load" }), tab.keyboard.press("Enter")]);
  },
  async type(_, { page, selector, text }) {
    await pages.get(page).page.type(selector, text);
  },
  async select(_, { page, selector, value }) {
    await pages.get(page).page.select(selector, value);
  },
  // The pointer over a part, so far from its left edge.
  async hover(_, { page, selector, across }) {
    const { page: tab } = pages.get(page);
    const place = await tab.$(selector);
    await place.evaluate((e) => e.scrollIntoView({ block: "center" }));
    const box = await place.boundingBox();
    await tab.mouse.move(box.x + box.width * across, box.y + box.height / 2);
    await tab.evaluate(painted);  // a chart follows the pointer once in a frame
    return true;
  },
  async shot(_, { page, file }) {
    await pages.get(page).page.screenshot({ path: file, fullPage: true });
  },
  async close(_, { page }) {
    const { page: tab } = pages.get(page);
    pages.set(page, null);
    await tab.browserContext().close();
  },
};

const browser = await launch();
console.log(JSON.stringify({ version: await browser.version() }));
for await (const line of createInterface({ input: process.stdin })) {
  const { deed, ...rest } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ value: (await deeds[deed](browser, rest)) ?? null }));
  } catch (fault) {
    console.log(JSON.stringify({ fault: `${deed}: ${fault.message}` }));
  }
}
await browser.close();
