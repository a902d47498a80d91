// TAP for the page's tests in JavaScript, and the page's modules for node,
// which takes them as modules only beside a package.json that says so.

import { webcrypto } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

// as browsers have it; node 18 does not
globalThis.crypto ??= webcrypto;

let count = 0;
let failed = 0;


export function ok(good, name, note) {
    count++;
    if (!good) {
        failed++;
    }
    console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
    if (!good && note !== undefined) {
        console.log("# " + JSON.stringify(note));
    }
    return good;
}


export function is(got, want, name) {
    return ok(isDeepStrictEqual(got, want), name, { got, want });
}


export function done() {
    console.log(`1..${count}`);
    process.exitCode = failed ? 1 : 0;
}


export async function modules(...names) {
    const dir = mkdtempSync(join(tmpdir(), "llm-web-"));

    cpSync(fileURLToPath(new URL("../../web", import.meta.url)), dir,
           { recursive: true });
    writeFileSync(join(dir, "package.json"), '{"type": "module"}');

    const all = await Promise.all(names.map(
        n => import(pathToFileURL(join(dir, n)).href)));

    rmSync(dir, { recursive: true });

    return Object.assign({}, ...all);
}
