// A new user's browser: asks the page that a server shows once it is there.
//
// usage: node minute.mjs URL SECONDS
//
// Waits for the page for so many seconds.  Prints when it was there, when its
// model was loaded, and when the answer was whole, in seconds since the start;
// and the answer.

import { launch } from "../web/chromium.mjs";

const [url, patience] = process.argv.slice(2);
const begin = Date.now();
const said = what => console.log(
    `${((Date.now() - begin) / 1000).toFixed(1)} s: ${what}`);

for (;;) {
    const there = await fetch(url).then(r => r.ok, () => false);

    if (there) {
        break;
    }
    if (Date.now() - begin > patience * 1000) {
        console.log(`no page at ${url} after ${patience} s`);
        process.exit(1);
    }
    await new Promise(r => setTimeout(r, 200));
}
said("the server shows its page");

const browser = await launch();
const page = await browser.page();

await page.goto(url);
await page.until("document.querySelectorAll('#model option').length > 0");
said("the page knows the model");

await page.fill("#prompt", "What is 2 + 2?");
await page.press("Enter");
await page.until("!document.querySelector('.live')"
                 + " && document.querySelector('.message:last-child .figures')"
                 + "?.innerText");

const answer = await page.value(
    "document.querySelector('.message:last-child .text:not(.reasoning .text)')"
    + "?.innerText");

said(`the answer: ${answer}`);
await browser.close();
process.exit(/4/.test(answer) ? 0 : 1);
