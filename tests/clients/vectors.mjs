// Files are vectorized, and a group is searched.
import assert from "node:assert/strict";
import { failure, file, sdk } from "./server.mjs";

const { upload, files, groups } = sdk();
const group = await groups.private.create({ name: "docs" });
const text = "The boiler is serviced in May.";
const boiler = await upload.private.file(file(text, "boiler.txt", "text/plain")).group(group.id).vectorize();
assert.equal(boiler.vectorized, true);
const tea = await upload.private.file(file("Tea is made with hot water.", "tea.txt", "text/plain")).group(group.id);
const made = await files.private.vectorize(tea.id);
assert.deepEqual([made.success, made.status], [true, "indexed"]);

const found = await files.private.queryVectors({ groupId: group.id, query: "when is the boiler serviced?" });
assert.equal(found.count, 2);
assert.deepEqual(found.matches.map((match) => [match.file_id, match.cid]), [[boiler.id, boiler.cid], [tea.id, tea.cid]]);
assert.ok(found.matches[0].score > found.matches[1].score);
const best = await files.private.queryVectors({ groupId: group.id, query: "boiler serviced", returnFile: true });
assert.equal(best.data, text);

assert.deepEqual(await files.private.deleteVectors(boiler.id), { success: true });
const rest = await files.private.queryVectors({ groupId: group.id, query: "boiler" });
assert.deepEqual(rest.matches.map((match) => match.file_id), [tea.id]);
const stranger = sdk(process.env.ROOST_OTHER);
assert.match((await failure(stranger.files.private.queryVectors({ groupId: group.id, query: "tea" }))).message, /404/);
assert.match((await failure(stranger.files.private.deleteVectors(tea.id))).message, /404/);
const binary = await upload.private.file(file(new Uint8Array([0, 1, 2]), "a.bin", "application/octet-stream"));
assert.match((await failure(files.private.vectorize(binary.id))).message, /400/);
console.log("done");
