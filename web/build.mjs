// Bundles the page into collector/web/assets: app.js, app.css, the licences of what is in them, and checksums.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync, readdirSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "collector", "web", "assets");
mkdirSync(out, { recursive: true });

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  write: false,
  logLevel: "warning",
};
// d3-flame-graph imports its style sheet, which ours imports as well.
const script = await build({ ...options, entryPoints: ["src/main.js"], format: "iife", loader: { ".css": "empty" } });
const style = await build({ ...options, entryPoints: ["src/style.css"] });
const written = {
  "app.js": script.outputFiles[0].text,
  "app.css": style.outputFiles[0].text,
  "LICENSES.txt": licences([...Object.keys(script.metafile.inputs), ...Object.keys(style.metafile.inputs)]),
};
written["SHA256SUMS"] = Object.entries(written)
  .map(([name, text]) => `${createHash("sha256").update(text).digest("hex")}  ${name}\n`)
  .join("");
for (const [name, text] of Object.entries(written)) writeFileSync(join(out, name), text);

/** The licence texts of the packages that files of a bundle come from. */
function licences(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input);
    if (found) packages.add(found[1]);
  }
  return [...packages]
    .sort()
    .map((name) => {
      const folder = join(here, "node_modules", name);
      const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
      const text = readFileSync(join(folder, file), "utf8").trim();
      return `${name} ${about.version} (${about.license})\n\n${text}\n`;
    })
    .join(`\n${"-".repeat(100)}\n\n`);
}
