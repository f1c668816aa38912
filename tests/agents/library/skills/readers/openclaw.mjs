// Writes as JSON what OpenClaw's own loader reads: node openclaw.mjs DIST ROOT TO; below ROOT each folder has a skill.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [dist, root, to] = process.argv.slice(2);
const file = fs.readdirSync(dist).find((name) => /^local-loader-.*\.mjs$/.test(name));
const exported = Object.values(await import(pathToFileURL(path.join(dist, file))));
const load = exported.find((one) => one.name === "loadSingleSkillDirectory");
const found = {};
for (const number of fs.readdirSync(root)) {
  const [name] = fs.readdirSync(path.join(root, number));
  const rootRealPath = path.join(root, number);
  const loaded = load({ skillDir: path.join(rootRealPath, name), rootRealPath, source: "workspace", maxBytes: 256e3 });
  found[number] = loaded && [loaded.skill.name, loaded.skill.description];
}
fs.writeFileSync(to, JSON.stringify(found));
process.exit(0);
