// `@pinata/sdk` 2.1.0: it knows one address only, which DNS and an authority of one's own can make a server's of one's own.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { Readable } from "node:stream";

const Client = createRequire(import.meta.url)("@pinata/sdk");
const { ROOST_KEY: jwt, ROOST_HANDLE: handle, ROOST_SECRET: secret } = process.env;
const roost = new Client({ pinataJWTKey: jwt });
const HELLO = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"; // "hello world"
const HELLO_V0 = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD";
const FAR = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";
const failure = (promise) => promise.then(() => assert.fail("It was to fail."), (error) => error);

// Who one is: by token, and by key and secret.
assert.deepEqual(await roost.testAuthentication(), { authenticated: true });
assert.deepEqual(await new Client(handle, secret).testAuthentication(), { authenticated: true });
assert.equal((await failure(new Client(handle, "0".repeat(64)).testAuthentication())).reason, "INVALID_CREDENTIALS");

// Uploads.
const options = (name, keyvalues, more) => ({ pinataMetadata: { name, keyvalues }, pinataOptions: { cidVersion: 1, ...more } });
const one = await roost.pinFileToIPFS(Readable.from(["hello ", "world"]), options("greeting", { n: 9, kind: "text" }));
assert.deepEqual([one.IpfsHash, one.PinSize], [HELLO, 11]);
const old = await roost.pinFileToIPFS(Readable.from(["hello world"]), options("greeting 0", {}, { cidVersion: 0 }));
assert.equal(old.IpfsHash, HELLO_V0);
const wrapped = await roost.pinFileToIPFS(Readable.from(["x"]), options("x.txt", {}, { wrapWithDirectory: true }));
assert.match(wrapped.IpfsHash, /^bafybei/);
const bare = await roost.pinJSONToIPFS({ a: 1 });
const json = await roost.pinJSONToIPFS({ a: 2 }, options("a.json", { n: 10 }));
assert.notEqual(bare.IpfsHash, json.IpfsHash);
await mkdir("trip");
await writeFile("trip/a.txt", "one");
await writeFile("trip/b.txt", "two");
const folder = await roost.pinFromFS("trip", options("trip"));
assert.match(folder.IpfsHash, /^bafybei/);
assert.equal((await roost.pinFromFS("trip/a.txt")).PinSize, 3);
const asked = await roost.pinByHash(FAR, options("far away"));
assert.deepEqual([asked.ipfsHash, asked.name], [FAR, "far away"]);
const jobs = await roost.pinJobs({ sort: "ASC", ipfs_pin_hash: FAR, limit: 5 });
assert.deepEqual([jobs.count, jobs.rows[0].id], [1, asked.id]);
assert.equal((await roost.pinJobs()).rows.length, 1);

// The list.
const hashes = async (filters) => (await roost.pinList(filters)).rows.map((row) => row.ipfs_pin_hash);
assert.equal((await hashes({})).length, 7);
assert.deepEqual(await hashes({ status: "pinned", pageLimit: 1, pageOffset: 1 }), [folder.IpfsHash]);
assert.deepEqual(await hashes({ metadata: { name: "trip" } }), [folder.IpfsHash]);
assert.deepEqual(await hashes({ hashContains: HELLO.slice(10) }), [HELLO]);
assert.deepEqual(await hashes({ pinSizeMin: 11, pinSizeMax: 11 }), [HELLO_V0, HELLO]);
assert.deepEqual(await hashes({ pinStart: "2999-01-01T00:00:00.000Z" }), []);
const n = (condition) => hashes({ metadata: { keyvalues: { n: condition } } });
assert.deepEqual(await n({ value: 9, op: "gt" }), [json.IpfsHash]);
assert.deepEqual(await n({ value: 9, secondValue: 10, op: "between" }), [json.IpfsHash, HELLO]);
assert.deepEqual(await n({ value: 10, secondValue: 11, op: "notBetween" }), [HELLO]);
assert.deepEqual(await hashes({ metadata: { keyvalues: { kind: { value: "TEXT", op: "iLike" } } } }), [HELLO]);
const every = [];
for await (const pin of roost.getFilesByCount({ status: "pinned" }, 3)) every.push(pin.ipfs_pin_hash);
assert.equal(every.length, 3);
assert.equal((await roost.userPinnedDataTotal()).pin_count, 7);

// Notes, and the end.
assert.equal(await roost.hashMetadata(HELLO, { name: "other", keyvalues: { kind: null } }), "OK");
assert.deepEqual((await roost.pinList({ metadata: { name: "other" } })).rows[0].metadata.keyvalues, { n: 9 });
assert.equal(await roost.unpin(HELLO), "OK");
assert.equal((await failure(roost.unpin(HELLO))).reason, "CURRENT_USER_HAS_NOT_PINNED_CID");
assert.deepEqual(await hashes({ status: "unpinned" }), [HELLO]);
console.log("done");
