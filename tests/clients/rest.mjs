// What the other journeys leave out: each method on the other network, each filter, each option.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { api, collected, failure, file, sdk } from "./server.mjs";

const roost = sdk();
const { upload, files, groups, gateways, keys } = roost;
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const ids = (list) => list.map((one) => one.id);

// Uploads: of an address privately, by another key, with headers of one's own, all that a form can say.
const elsewhere = createServer((_, answer) => answer.end("from elsewhere")).listen(0, "127.0.0.1");
await new Promise((listening) => elsewhere.once("listening", listening));
const fetched = await upload.private.url(`http://127.0.0.1:${elsewhere.address().port}/x`).name("fetched");
elsewhere.close();
assert.deepEqual([fetched.name, fetched.network], ["fetched", "private"]);
const json = await sdk("nonsense").upload.private.json({ a: 1 }).key(process.env.ROOST_KEY);
const film = await upload.public.file(file("a film", "film.mp4", "video/mp4")).streamable();
const based = await upload.public.base64(DOT).name("dot.png").keyvalues({ kind: "dot" });
const other = sdk("nonsense");
other.setNewJwt(process.env.ROOST_KEY);
assert.match((await other.testAuthentication()).message, /^Congratulations/);
other.setNewHeaders({ "X-Custom": "1" });
assert.deepEqual((await other.files.public.get(film.id)).cid, film.cid);

// A CAR of one block is the file in it.
const block = Buffer.from("hello world");
const cid = Buffer.concat([Buffer.from("01551220", "hex"), createHash("sha256").update(block).digest()]);
const header = Buffer.concat([Buffer.from("a265726f6f747381d82a582500", "hex"), cid, Buffer.from("6776657273696f6e01", "hex")]);
const sized = (...parts) => Buffer.concat([Buffer.from([parts.reduce((sum, part) => sum + part.length, 0)]), ...parts]);
const car = await upload.public.file(file(Buffer.concat([sized(header), sized(cid, block)]), "hello.car")).car();
assert.deepEqual([car.cid, car.size], ["bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e", 11]);
assert.equal((await gateways.public.get(car.cid)).data.size ?? (await gateways.public.get(car.cid)).data.length, 11);

// Public files: change, and delete.
assert.deepEqual((await files.public.list().keyvalues({ kind: "dot" })).files.map((one) => one.id), [based.id]);
assert.deepEqual((await files.public.list().cidPending(true)).files, []);
assert.deepEqual((await files.public.update({ id: film.id, keyvalues: { seen: "yes" } })).keyvalues, { seen: "yes" });
const soon = Math.floor(Date.now() / 1000) + 3600;
assert.equal((await files.private.update({ id: json.id, expires_at: soon })).id, json.id);
assert.deepEqual(await files.public.delete([film.id]), [{ id: film.id, status: "OK" }]);
assert.equal((await failure(files.public.update({ id: film.id, name: "gone" }))).statusCode, 404);

// Public groups, with every filter.
const dots = await groups.public.create({ name: "dots", isPublic: true });
const lines = await groups.public.create({ name: "lines" });
assert.deepEqual(ids((await groups.public.list().isPublic(true)).groups), [dots.id]);
assert.deepEqual(ids((await groups.public.list().name("line")).groups), [lines.id]);
const page = await groups.public.list().limit(1);
assert.deepEqual(ids((await groups.public.list().limit(1).pageToken(page.next_page_token)).groups), [dots.id]);
assert.equal((await collected(groups.public.list().limit(1))).length, 2);
assert.equal((await groups.public.addFiles({ groupId: dots.id, files: [based.id] }))[0].status, "OK");
assert.deepEqual(ids((await files.public.list().group(dots.id)).files), [based.id]);
assert.equal((await groups.public.removeFiles({ groupId: dots.id, files: [based.id] }))[0].status, "OK");
assert.equal((await groups.public.update({ groupId: dots.id, isPublic: false })).is_public, false);
assert.equal(await groups.public.delete({ groupId: dots.id }), "OK");
assert.deepEqual(await files.public.list().noGroup(true).all().then((all) => all.map((one) => one.group_id)), [null, null]);

// Private swaps, and what one says who asks for the history of nothing.
assert.equal((await files.private.addSwap({ cid: json.cid, swapCid: fetched.cid })).mapped_cid, fetched.cid);
const asked = { cid: json.cid, domain: process.env.ROOST_GATEWAY };
assert.equal((await files.private.getSwapHistory(asked))[0].mapped_cid, fetched.cid);
assert.equal(await files.private.deleteSwap(json.cid), "OK");
const none = await failure(files.private.getSwapHistory({ ...asked, cid: fetched.cid }));
assert.deepEqual([none.statusCode, none.message], [404, "CID does not have history"]);

// The queue: hosts, states, pages.
const host = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const far = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";
const near = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
const pins = [await upload.public.cid(far).group(lines.id), await upload.public.cid(near, { peerAddresses: [] }).peerAddress([host])];
const first = await files.public.queue().sort("ASC").pageLimit(1);
assert.deepEqual(ids(first.jobs), [pins[0].id]);
assert.equal(first.jobs[0].group_id, lines.id);
const second = await files.public.queue().sort("ASC").pageLimit(1).pageToken(first.next_page_token);
assert.deepEqual(second.jobs.map((job) => [job.id, job.host_nodes]), [[pins[1].id, [host]]]);
assert.deepEqual((await files.public.queue().status("over_max_size")).jobs, []);
assert.equal((await collected(files.public.queue())).length, 2);

// Keys, by each filter.
const limited = await keys.create({ keyName: "limited", permissions: { admin: true }, maxUses: 1 });
assert.deepEqual((await keys.list().limitedUse(true).exhausted(false)).map((key) => key.name), ["limited"]);
await sdk(limited.JWT).files.private.list();
assert.deepEqual((await keys.list().exhausted(true)).map((key) => key.name), ["limited"]);
assert.equal((await keys.list().all()).length, (await keys.list().offset(1)).length + 1);

// Pictures that are private: for oneself, and by a link.
const picture = await upload.private.base64(DOT).name("dot.png");
const small = await gateways.private.get(picture.cid).optimizeImage({ width: 1, format: "webp" });
assert.equal(small.contentType, "image/webp");
const link = await gateways.private.createAccessLink({ cid: picture.cid, expires: 60 }).optimizeImage({ width: 1, format: "webp" });
assert.equal((await fetch(link)).headers.get("content-type"), "image/webp");
assert.equal((await fetch(link.replace("img-width=1", "img-width=2"))).ok, false);

// A gateway's key goes with each request of one who has it.
const headers = { Authorization: `Bearer ${process.env.ROOST_KEY}`, "Content-Type": "application/json" };
const rows = (await (await fetch(`${api}/gateways`, { headers })).json()).data.rows;
const { id } = rows.find((row) => row.domain === process.env.ROOST_GATEWAY);
const made = await (await fetch(`${api}/gateways/${id}/access_tokens`, { method: "POST", headers })).json();
assert.equal((await failure(gateways.public.get(based.cid))).statusCode, 401);
roost.config.pinataGatewayKey = made.data.value;
assert.equal((await gateways.public.get(based.cid)).contentType, "image/png");
console.log("done");
