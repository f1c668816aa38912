// `pinata` 1.10.1, of when all files were private: its paths name no network.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { PinataSDK } from "pinata-1";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_GATEWAY: gateway } = process.env;
const made = (jwt) => {
  const sdk = new PinataSDK({
    pinataJwt: jwt,
    endpointUrl: `http://api.localhost:${port}/v3`,
    uploadUrl: `http://uploads.localhost:${port}/v3`,
  });
  sdk.config.pinataGateway = `http://${gateway}.gateways.localhost:${port}`;
  return sdk;
};
const roost = made(key);
const { upload, files, groups, gateways, keys } = roost;
const file = (content, name) => new File([content], name);
const ids = (list) => list.map((one) => one.id);
const fails = async (promise, status) => assert.equal((await promise.then(() => ({}), (error) => error)).statusCode, status);

assert.match((await roost.testAuthentication()).message, /^Congratulations/);
const other = made("nonsense");
await fails(other.testAuthentication(), 401);
other.setNewJwt(key);
other.setNewHeaders({ "X-Custom": "1" });
assert.deepEqual((await other.files.list()).files, []);

// Uploads, and what was uploaded is private.
const group = await groups.create({ name: "letters" });
const a = await upload.file(file("content of a", "a.txt")).addMetadata({ name: "first", keyvalues: { letter: "a" } });
const b = await upload.json({ b: 1 }).group(group.id);
const c = await upload.base64(Buffer.from("based").toString("base64")).key(key);
assert.deepEqual([a.name, a.number_of_files, b.group_id, c.size], ["first", 1, group.id, 5]);
const elsewhere = createServer((_, answer) => answer.end("from elsewhere")).listen(0, "127.0.0.1");
await new Promise((listening) => elsewhere.once("listening", listening));
const fetched = await upload.url(`http://127.0.0.1:${elsewhere.address().port}/x`);
elsewhere.close();
assert.equal(fetched.size, 14);
assert.deepEqual(await files.delete([fetched.id]), [{ id: fetched.id, status: "OK" }]);
const signed = await upload.createSignedURL({ expires: 60, name: "by a guest" });
const d = await made("undefined").upload.file(file("from a guest", "g.txt")).url(signed);
const shown = await fetch(`http://api.localhost:${port}/v3/files/public`, { headers: { Authorization: `Bearer ${key}` } });
assert.deepEqual((await shown.json()).data.files, []);

// Lists.
assert.deepEqual(ids((await files.list()).files), ids([d, c, b, a]));
const page = await files.list().limit(3).order("ASC");
assert.deepEqual(ids(page.files), ids([a, b, c]));
assert.deepEqual(ids((await files.list().limit(3).order("ASC").pageToken(page.next_page_token)).files), [d.id]);
assert.equal((await files.list().limit(2).all()).length, 4);
assert.deepEqual(ids((await files.list().metadata({ letter: "a" })).files), [a.id]);
assert.deepEqual(ids((await files.list().name("first")).files), [a.id]);
assert.deepEqual(ids((await files.list().cid(c.cid)).files), [c.id]);
assert.deepEqual(ids((await files.list().group(group.id)).files), [b.id]);
assert.equal((await files.list().noGroup(true)).files.length, 3);

// Vectors: the SDK waits for the answer, and then searches.
const boiler = await upload.file(file("The boiler is serviced in May.", "boiler.txt")).group(group.id).vectorize();
assert.equal(boiler.vectorized, true);
assert.equal((await files.vectorize(boiler.id)).success, true);
const near = await files.queryVectors({ groupId: group.id, query: "the boiler" });
assert.deepEqual([near.count, near.matches[0].file_id, near.matches[0].cid], [1, boiler.id, boiler.cid]);
const best = await files.queryVectors({ groupId: group.id, query: "the boiler", returnFile: true });
assert.equal(best.data, "The boiler is serviced in May.");
assert.deepEqual(await files.deleteVectors(boiler.id), { success: true });
assert.deepEqual(await files.delete([boiler.id]), [{ id: boiler.id, status: "OK" }]);

// One file, and groups.
assert.equal((await files.update({ id: a.id, name: "renamed" })).name, "renamed");
assert.deepEqual(await groups.addFiles({ groupId: group.id, files: [a.id] }), [{ id: a.id, status: "OK" }]);
assert.deepEqual(ids((await files.list().group(group.id)).files), ids([b, a]));
assert.deepEqual(await groups.removeFiles({ groupId: group.id, files: [b.id] }), [{ id: b.id, status: "OK" }]);
assert.equal((await groups.update({ groupId: group.id, name: "signs" })).name, "signs");
assert.equal((await groups.get({ groupId: group.id })).name, "signs");
assert.deepEqual(ids((await groups.list().name("sig")).groups), [group.id]);
assert.deepEqual(ids(await groups.list().limit(1).all()), [group.id]);
assert.equal(await groups.delete({ groupId: group.id }), "OK");
await fails(groups.get({ groupId: group.id }), 404);

// Reading: the SDK signs an address for itself, or for somebody else.
assert.equal((await gateways.get(a.cid)).data, "content of a");
assert.deepEqual((await gateways.get(b.cid)).data, { b: 1 });
const link = await gateways.createSignedURL({ cid: a.cid, expires: 60 });
assert.equal(await (await fetch(link)).text(), "content of a");

// Swaps.
assert.equal((await files.addSwap({ cid: a.cid, swapCid: c.cid })).mapped_cid, c.cid);
assert.equal((await files.getSwapHistory({ cid: a.cid, domain: gateway }))[0].mapped_cid, c.cid);
assert.equal(await files.deleteSwap(a.cid), "OK");

// Keys.
const limited = await keys.create({ keyName: "reader", permissions: { resources: ["org:files:read"] } });
assert.equal((await made(limited.JWT).files.list()).files.length, 4);
await fails(made(limited.JWT).upload.json({}), 403);
assert.equal((await keys.list().name("reader"))[0].key, limited.pinata_api_key);
assert.equal((await keys.revoke([limited.pinata_api_key]))[0].status, "Revoked");
assert.deepEqual(await files.delete([a.id]), [{ id: a.id, status: "OK" }]);
await fails(files.update({ id: a.id, name: "x" }), 404);
console.log("done");
