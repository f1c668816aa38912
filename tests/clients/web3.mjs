// The older SDK: everything is public there, and goes to addresses without a version.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { PinataSDK } from "pinata-web3";
import { collected, failure, file, gatewayUrl } from "./server.mjs";

const { ROOST_PORT: port, ROOST_KEY: key } = process.env;

function sdk(jwt = key) {
  const made = new PinataSDK({ pinataJwt: jwt, endpointUrl: `http://api.localhost:${port}` });
  made.config.pinataGateway = gatewayUrl; // as with the newer one
  return made;
}

const roost = sdk();
const HELLO = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"; // "hello world"
const FAR = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";

// Who one is, and credentials that are none or do not reach.
assert.match((await roost.testAuthentication()).message, /^Congratulations/);
assert.equal((await failure(sdk("nonsense").testAuthentication())).statusCode, 401);
const reader = sdk(process.env.ROOST_READER);
const refused = await failure(reader.upload.file(file("x", "x")));
assert.deepEqual([refused.name, refused.statusCode], ["AuthenticationError", 403]);

// Every way to upload.
const group = await roost.groups.create({ name: "birds" });
const one = await roost.upload
  .file(file("hello world", "hello.txt"))
  .addMetadata({ name: "greeting", keyValues: { kind: "text", n: 9 } })
  .group(group.id);
assert.deepEqual([one.IpfsHash, one.PinSize, one.isDuplicate], [HELLO, 11, false]);
assert.ok(new Date(one.Timestamp) <= new Date());
assert.equal((await roost.upload.file(file("hello world", "again.txt"))).isDuplicate, true);
const json = await roost.upload.json({ a: 1 }).addMetadata({ name: "a.json", keyValues: { n: 10 } });
const based = await roost.upload.base64(Buffer.from("based").toString("base64"));
const elsewhere = createServer((_, answer) => answer.end("from elsewhere")).listen(0, "127.0.0.1");
await new Promise((listening) => elsewhere.once("listening", listening));
const fetched = await roost.upload.url(`http://127.0.0.1:${elsewhere.address().port}/x`);
elsewhere.close();
assert.equal(fetched.PinSize, 14);
const streamed = await roost.upload.stream(Readable.from(["stre", "amed"])).addMetadata({ name: "a stream" });
assert.equal(streamed.PinSize, 8);
const inside = file("two", "b.txt");
Object.defineProperty(inside, "webkitRelativePath", { value: "trip/days/b.txt" });
const first = file("one", "a.txt");
Object.defineProperty(first, "webkitRelativePath", { value: "trip/a.txt" });
const folder = await roost.upload.fileArray([first, inside]).addMetadata({ name: "trip" });
assert.match(folder.IpfsHash, /^bafybei/);
assert.equal(await (await fetch(`${gatewayUrl}/ipfs/${folder.IpfsHash}/days/b.txt`)).text(), "two");
const flat = await roost.upload.fileArray([file("1", "1.txt"), file("2", "2.txt")]);
const guest = await sdk("undefined").upload.file(file("by another key", "k")).key(key);
assert.equal(guest.PinSize, 14);
const asked = await roost.upload.cid(FAR).addMetadata({ name: "far away" });
assert.deepEqual([asked.ipfsHash, asked.name], [FAR, "far away"]);
const NEAR = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
const host = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
assert.equal((await roost.upload.cid(NEAR, { peerAddresses: [] }).peerAddress([host])).ipfsHash, NEAR);
assert.ok((await failure(roost.upload.cid("no cid"))).statusCode);

// The queue.
const jobs = await roost.pinJobs().cid(FAR).sort("ASC");
assert.deepEqual(jobs.map((job) => [job.id, job.ipfs_pin_hash, job.name]), [[asked.id, FAR, "far away"]]);
assert.deepEqual(await roost.pinJobs().status("over_max_size"), []);
assert.deepEqual((await roost.pinJobs().pageLimit(1).pageOffset(1)).map((job) => job.host_nodes), [[host]]);
assert.equal((await roost.pinJobs().all()).length, 2);

// The list, by each filter.
const hashes = async (list) => (await list).map((row) => row.ipfs_pin_hash);
const newest = [guest, flat, folder, streamed, fetched, based, json, one].map((pin) => pin.IpfsHash);
assert.deepEqual(await hashes(roost.listFiles()), newest);
assert.deepEqual(await hashes(roost.listFiles().pageLimit(3).all()), newest);
assert.deepEqual(await hashes(collected(roost.listFiles().pageLimit(4))), newest);
assert.deepEqual(await hashes(roost.listFiles().pageLimit(2).pageOffset(1)), newest.slice(1, 3));
assert.deepEqual(await hashes(roost.listFiles().cid(HELLO)), [HELLO]);
assert.deepEqual(await hashes(roost.listFiles().name("trip")), [folder.IpfsHash]);
assert.deepEqual(await hashes(roost.listFiles().group(group.id)), [HELLO]);
assert.deepEqual(await hashes(roost.listFiles().pinSizeMin(14).pinSizeMax(14)), [guest.IpfsHash, fetched.IpfsHash]);
assert.deepEqual(await hashes(roost.listFiles().pinStart("2000-01-01").pinEnd("2000-01-02")), []);
assert.deepEqual(await hashes(roost.listFiles().pinStart(one.Timestamp).pinEnd(one.Timestamp)), [HELLO]);
const keyValue = (...condition) => hashes(roost.listFiles().keyValue(...condition));
assert.deepEqual(await keyValue("kind", "text"), [HELLO]);
assert.deepEqual(await keyValue("n", 9, "gt"), [json.IpfsHash]);
assert.deepEqual(await keyValue("n", 9, "gte"), [json.IpfsHash, HELLO]);
assert.deepEqual(await keyValue("n", 10, "lt"), [HELLO]);
assert.deepEqual(await keyValue("n", 10, "lte"), [json.IpfsHash, HELLO]);
assert.deepEqual(await keyValue("n", 9, "ne"), [json.IpfsHash]);
assert.deepEqual(await keyValue("kind", "te%", "like"), [HELLO]);
assert.deepEqual(await keyValue("kind", "TE%", "iLike"), [HELLO]);
assert.deepEqual(await keyValue("kind", "te%", "notLike"), []);
assert.equal((await failure(collected(roost.listFiles().keyValue("kind", ".*", "regexp")))).statusCode, 400);
assert.ok((await roost.usage.pinnedFileCount()) === newest.length);
const bytes = (await roost.listFiles()).reduce((sum, row) => sum + row.size, 0);
assert.equal(await roost.usage.totalStorageSize(), bytes);

// Notes.
assert.equal(await roost.updateMetadata({ cid: HELLO, name: "other", keyValues: { kind: "word" } }), "OK");
const [noted] = await roost.listFiles().name("other");
assert.deepEqual([noted.ipfs_pin_hash, noted.metadata.keyvalues], [HELLO, { kind: "word", n: 9 }]);
assert.equal((await failure(roost.updateMetadata({ cid: FAR, name: "x" }))).statusCode, 400);

// Groups.
assert.deepEqual(Object.keys(group).sort(), ["createdAt", "id", "name", "updatedAt", "user_id"]);
assert.equal(await roost.groups.addCids({ groupId: group.id, cids: [json.IpfsHash, based.IpfsHash] }), "OK");
assert.deepEqual(await hashes(roost.listFiles().group(group.id)), [based, json, one].map((pin) => pin.IpfsHash));
assert.equal(await roost.groups.removeCids({ groupId: group.id, cids: [based.IpfsHash] }), "OK");
assert.equal((await roost.listFiles().group(group.id)).length, 2);
assert.equal((await roost.groups.update({ groupId: group.id, name: "owls" })).name, "owls");
assert.equal((await roost.groups.get({ groupId: group.id })).name, "owls");
const herons = await roost.groups.create({ name: "herons" });
assert.deepEqual((await roost.groups.list()).map((row) => row.name), ["herons", "owls"]);
assert.deepEqual((await roost.groups.list().limit(1).offset(1)).map((row) => row.name), ["owls"]);
assert.deepEqual((await roost.groups.list().limit(1).all()).map((row) => row.name), ["herons", "owls"]);
assert.deepEqual((await roost.groups.list().name("her")).map((row) => row.id), [herons.id]);
assert.equal(await roost.groups.delete({ groupId: herons.id }), "OK");
assert.equal((await failure(roost.groups.get({ groupId: herons.id }))).statusCode, 404);
assert.equal((await failure(roost.groups.addCids({ groupId: group.id, cids: [FAR] }))).statusCode, 404);
assert.deepEqual(await collected(sdk(process.env.ROOST_OTHER).groups.list()), []);

// Reading.
assert.deepEqual((await roost.gateways.get(json.IpfsHash)).data, { a: 1 });
assert.equal((await roost.gateways.get(HELLO)).data, "hello world");
assert.equal(await roost.gateways.convert(`ipfs://${HELLO}`), `${gatewayUrl}/ipfs/${HELLO}`);
assert.equal(await roost.gateways.convert(HELLO, "https://example.org"), `https://example.org/ipfs/${HELLO}`);
assert.deepEqual(await roost.gateways.containsCID(`https://x/ipfs/${HELLO}`), { containsCid: true, cid: HELLO });
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const picture = await roost.upload.base64(dot).addMetadata({ name: "dot.png" });
const small = await roost.gateways.get(picture.IpfsHash).optimizeImage({ width: 1, format: "webp", quality: 50 });
assert.equal(small.contentType, "image/webp");

// Swaps, in camelCase.
const swap = await roost.gateways.swapCid({ cid: HELLO, swapCid: json.IpfsHash });
assert.deepEqual(Object.keys(swap).sort(), ["createdAt", "mappedCid"]);
assert.equal(swap.mappedCid, json.IpfsHash);
const domain = process.env.ROOST_GATEWAY;
assert.deepEqual(await roost.gateways.swapHistory({ cid: HELLO, domain }), [swap]);
assert.equal(await roost.gateways.deleteSwap(HELLO), "OK");
assert.deepEqual((await roost.gateways.swapHistory({ cid: HELLO, domain })).map((row) => row.mappedCid), [null, json.IpfsHash]);
const strange = await failure(roost.gateways.swapHistory({ cid: FAR, domain }));
assert.deepEqual([strange.statusCode, strange.message], [404, "CID does not have history"]);
assert.equal((await failure(roost.gateways.swapCid({ cid: FAR, swapCid: HELLO }))).message, "CID not pinned to account");

// Signatures: this SDK sends no address, without which nothing can be verified.
assert.equal((await failure(roost.signatures.add({ cid: HELLO, signature: "0x00" }))).statusCode, 400);
assert.equal((await failure(roost.signatures.get(HELLO))).statusCode, 404);
assert.equal((await failure(roost.signatures.delete(HELLO))).statusCode, 404);

// Keys.
const endpoints = { pinning: { pinFileToIPFS: true }, data: { pinList: true } };
const made = await roost.keys.create({ keyName: "limited", permissions: { endpoints }, maxUses: 50 });
const limited = sdk(made.JWT);
assert.equal((await limited.listFiles()).length, newest.length + 1);
assert.equal((await failure(limited.groups.create({ name: "x" }))).statusCode, 403);
const [listed] = await roost.keys.list().name("limited").limitedUse(true).exhausted(false);
assert.deepEqual([listed.key, listed.max_uses, listed.revoked], [made.pinata_api_key, 50, false]);
assert.equal((await roost.keys.list().offset(1000)).length, 0);
assert.ok((await roost.keys.list().all()).length >= 2);
assert.deepEqual(await roost.keys.revoke([made.pinata_api_key]), [{ key: made.pinata_api_key, status: "Revoked" }]);
assert.equal((await failure(collected(limited.listFiles()))).statusCode, 401);
assert.deepEqual((await roost.keys.list().revoked(true)).map((row) => row.key), [made.pinata_api_key]);

// Another credential and headers on the way, then the end of it.
const changed = sdk("nonsense");
changed.setNewJwt(key);
assert.match((await changed.testAuthentication()).message, /^Congratulations/);
changed.setNewHeaders({ "X-Custom": "1" });
assert.equal((await changed.groups.list()).length, 1);
assert.deepEqual(await roost.unpin([HELLO]), [{ hash: HELLO, status: "OK" }]);
assert.match((await roost.unpin([HELLO]))[0].status, /CURRENT_USER_HAS_NOT_PINNED_CID/);
assert.equal((await roost.listFiles().cid(HELLO)).length, 0);
console.log("done");
