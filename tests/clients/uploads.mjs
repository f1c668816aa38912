// Every way to upload that the SDK has, and how many bytes it takes to change the way.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { collected, failure, file, sdk } from "./server.mjs";

const roost = sdk();
const HELLO = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"; // "hello world"

// One file, with all that can be said about it.
const group = await roost.groups.private.create({ name: "notes" });
const one = await roost.upload.private
  .file(file("hello world", "hello.txt", "text/plain"))
  .name("greeting")
  .keyvalues({ kind: "test", n: "1" })
  .group(group.id);
assert.equal(one.cid, HELLO);
assert.equal(one.name, "greeting");
assert.equal(one.size, 11);
assert.equal(one.number_of_files, 1);
assert.equal(one.mime_type, "text/plain");
assert.equal(one.group_id, group.id);
assert.deepEqual(one.keyvalues, { kind: "test", n: "1" });
assert.equal(one.network, "private");
assert.match(one.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
assert.equal((await roost.upload.private.file(file("hello world", "again.txt"))).is_duplicate, true);

// The same bytes under the other profiles.
const old = await roost.upload.public.file(file("hello world", "a.txt")).cidVersion("v0");
assert.equal(old.cid, "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD");
assert.equal(old.network, "public");
assert.match((await roost.upload.public.file(file("x".repeat(600_000), "b.txt")).cidVersion("unixfs-v1-2025")).cid, /^bafkrei/);
assert.match((await roost.upload.public.file(file("x".repeat(600_000), "b.txt"))).cid, /^bafybei/);

// JSON, base64 and the content of an address.
const json = await roost.upload.public.json({ a: [1, 2] }).name("a.json");
assert.deepEqual([json.name, json.mime_type], ["a.json", "application/json"]);
const based = await roost.upload.private.base64(Buffer.from("hello world").toString("base64"));
assert.deepEqual([based.cid, based.is_duplicate], [HELLO, true]);
const elsewhere = createServer((_, answer) => answer.end("from elsewhere")).listen(0, "127.0.0.1");
await new Promise((listening) => elsewhere.once("listening", listening));
const fetched = await roost.upload.public.url(`http://127.0.0.1:${elsewhere.address().port}/x`);
elsewhere.close();
assert.deepEqual([fetched.name, fetched.size], ["url_upload", 14]);

// A credential that is none, and one that may not write.
assert.equal((await failure(sdk("nonsense").upload.private.file(file("x", "x")))).statusCode, 401);
assert.equal((await failure(sdk(process.env.ROOST_READER).upload.private.file(file("x", "x")))).statusCode, 403);

assert.equal((await collected(roost.files.private.list().cid(HELLO))).length, 1);
console.log("done");
