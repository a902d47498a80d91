// Chromium without a window, by the DevTools protocol over a pipe: nothing has
// to be installed beside the browser.

import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// of slow machines; a condition that comes true costs no time
const PATIENCE = 120000;

const KEYS = {
    Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13,
             text: "\r" },
    Escape: { key: "Escape", code: "Escape", windowsVirtualKeyCode: 27 },
    ArrowUp: { key: "ArrowUp", code: "ArrowUp", windowsVirtualKeyCode: 38 },
    Delete: { key: "Delete", code: "Delete", windowsVirtualKeyCode: 46 },
    Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
    k: { key: "k", code: "KeyK", windowsVirtualKeyCode: 75 }
};

export const CTRL = 2, SHIFT = 8;


// the browser's path, or null

export function chromium() {
    const names = ["chromium-headless-shell", "chromium", "chromium-browser",
                   "google-chrome"];
    const all = (process.env.LLM_CHROMIUM ? [process.env.LLM_CHROMIUM] : [])
        .concat((process.env.PATH ?? "").split(":").flatMap(
            dir => names.map(n => join(dir, n))));

    return all.find(path => {
        try {
            accessSync(path, constants.X_OK);
            return true;
        } catch {
            return false;
        }
    }) ?? null;
}


export async function launch() {
    const dir = mkdtempSync(join(tmpdir(), "llm-chromium-"));
    const child = spawn(chromium(), ["--headless", "--remote-debugging-pipe",
        "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--hide-scrollbars", "--no-first-run", "--disable-extensions",
        "--force-color-profile=srgb",
        // a mouse, which a machine without a screen does not have
        "--blink-settings=primaryHoverType=2,availableHoverTypes=2,"
        + "primaryPointerType=4,availablePointerTypes=4", `--user-data-dir=${dir}`],
        { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
    const waiting = new Map();
    const sessions = new Map();
    let number = 0;
    let rest = "";
    let said = "";

    child.stderr.on("data", d => said = (said + d).slice(-4000));
    child.on("exit", () => {
        for (const { reject } of waiting.values()) {
            reject(new Error("chromium has ended:\n" + said));
        }
    });

    child.stdio[4].setEncoding("utf8").on("data", data => {
        const all = (rest + data).split("\0");

        rest = all.pop();

        for (const message of all.map(m => JSON.parse(m))) {
            const w = waiting.get(message.id);

            if (w) {
                waiting.delete(message.id);
                message.error ? w.reject(new Error(
                    `${w.method}: ${message.error.message}`))
                    : w.resolve(message.result);
            } else {
                sessions.get(message.sessionId)?.(message);
            }
        }
    });

    const send = (method, params = {}, sessionId) => new Promise(
        (resolve, reject) => {
            const id = ++number;

            waiting.set(id, { resolve, reject, method });
            child.stdio[3].write(JSON.stringify({ id, method, params,
                                                  sessionId }) + "\0");
        });

    return {
        version: async () => (await send("Browser.getVersion")).product,

        // a page in a profile of its own
        page: async () => {
            const { browserContextId }
                = await send("Target.createBrowserContext");
            const { targetId } = await send("Target.createTarget",
                { url: "about:blank", browserContextId });
            const { sessionId } = await send("Target.attachToTarget",
                                             { targetId, flatten: true });
            const page = new Page((method, params) => send(method, params,
                                                           sessionId));

            sessions.set(sessionId, m => page.event(m));
            await page.begin();

            return page;
        },

        close: async () => {
            const ended = new Promise(resolve => child.on("exit", resolve));

            send("Browser.close").catch(() => {});
            const timer = setTimeout(() => child.kill("SIGKILL"), 10000);

            await ended;
            clearTimeout(timer);
            rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
        }
    };
}


class Page {
    constructor(send) {
        this.send = send;
        this.requests = [];             // URLs
        this.posts = [];                // bodies
        this.complaints = [];           // errors of scripts and the policy
        this.mobile = false;
        this.dialogs = 0;               // alert() and the like
        this.lost = new Set();          // called when the page is left
    }

    async begin() {
        for (const domain of ["Page", "Runtime", "Network", "Log"]) {
            await this.send(domain + ".enable");
        }
        await this.size(1200, 800);
    }

    event({ method, params }) {
        if (method === "Network.requestWillBeSent") {
            this.requests.push(params.request.url);
            if (params.request.postData) {
                this.posts.push(params.request.postData);
            }
        } else if (method === "Runtime.exceptionThrown") {
            const d = params.exceptionDetails;
            this.complaints.push(d.exception?.description ?? d.text);
        } else if (method === "Log.entryAdded"
                   && params.entry.level === "error"
                   && params.entry.source !== "network")
        {
            this.complaints.push(params.entry.text);
        } else if (method === "Runtime.executionContextsCleared") {
            this.lost.forEach(reject => reject(new Error("the page was left")));
        } else if (method === "Page.javascriptDialogOpening") {
            this.dialogs++;
            this.send("Page.handleJavaScriptDialog", { accept: true });
        }
    }

    async size(width, height, { mobile = false, scale = 1 } = {}) {
        await this.send("Emulation.setDeviceMetricsOverride",
                        { width, height, deviceScaleFactor: scale, mobile });

        // not where nothing changes: the page would lose its mouse

        if (mobile !== this.mobile) {
            this.mobile = mobile;
            await this.send("Emulation.setTouchEmulationEnabled",
                            { enabled: mobile });
        }
    }

    prefers(features) {
        return this.send("Emulation.setEmulatedMedia", {
            features: Object.entries(features).map(
                ([name, value]) => ({ name, value })) });
    }

    async goto(url) {
        await this.send("Page.navigate", { url });
        await this.until("document.readyState === 'complete'"
                         + " && location.href !== 'about:blank'");
    }

    // the value of an expression

    async value(expression) {
        let lose;

        // what was asked of a page that is left is never answered

        const lost = new Promise((_, reject) => {
            lose = reject;
            this.lost.add(lose);
        });
        const r = await Promise.race([lost, this.send("Runtime.evaluate",
            { expression, awaitPromise: true, returnByValue: true })])
            .finally(() => this.lost.delete(lose));

        if (r.exceptionDetails) {
            throw new Error(`${expression}: ${
                r.exceptionDetails.exception?.description}`);
        }

        return r.result.value;
    }

    // waits until an expression is true; returns its value, or false

    async until(expression) {
        const end = Date.now() + PATIENCE;

        for (;;) {
            const value = await this.value(expression).catch(() => false);

            if (value || Date.now() > end) {
                return value;
            }
            await new Promise(r => setTimeout(r, 30));
        }
    }

    // clicks where the element is, as a person does

    async click(selector) {
        const at = await this.until(`(() => {
            const e = document.querySelector(${JSON.stringify(selector)});
            if (!e) return false;
            e.scrollIntoView({ block: "nearest" });
            const r = e.getBoundingClientRect();
            return r.width > 0 && { x: r.x + r.width / 2,
                                    y: r.y + r.height / 2 };
        })()`);

        if (!at) {
            throw new Error("not to be seen: " + selector);
        }
        for (const type of ["mouseMoved", "mousePressed", "mouseReleased"]) {
            await this.send("Input.dispatchMouseEvent", { type, ...at,
                button: type === "mouseMoved" ? "none" : "left",
                clickCount: 1 });
        }
    }

    type(text) {
        return this.send("Input.insertText", { text });
    }

    async press(name, modifiers = 0) {
        const key = { ...KEYS[name], modifiers };

        await this.send("Input.dispatchKeyEvent", { type: key.text
            ? "keyDown" : "rawKeyDown", ...key });
        await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...key });
    }

    // fills a field, as if it were typed

    async fill(selector, text) {
        await this.value(`(() => {
            const e = document.querySelector(${JSON.stringify(selector)});
            e.focus();
            e.select();
        })()`);
        await (text ? this.type(text) : this.press("Delete"));
    }

    async screenshot() {
        const { data } = await this.send("Page.captureScreenshot",
                                         { format: "png" });
        return Buffer.from(data, "base64");
    }
}
