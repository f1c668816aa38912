// The Pinning Service API as its own client sees it: add, wait, list with every filter, page, replace, remove.
import assert from "node:assert/strict";
import { Configuration, RemotePinningServiceClient } from "@ipfs-shipyard/pinning-service-client";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_OTHER: other, ROOST_CIDS, ROOST_NOWHERE: nowhere } = process.env;
const [first, second, ...more] = ROOST_CIDS.split(",");
const endpointUrl = `http://api.localhost:${port}/psa`;
const service = (accessToken) => new RemotePinningServiceClient(new Configuration({ endpointUrl, accessToken }));
const mine = service(key);

async function until(requestid, status) {
  for (let waited = 0; waited < 30_000; waited += 50) {
    const now = await mine.pinsRequestidGet({ requestid });
    if (now.status === status) return now;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${requestid} is not ${status}`);
}

async function refused(promise, status) {
  const response = await promise.then(() => assert.fail("It was to be refused."), (error) => error);
  assert.equal(response.status, status);
  const { error } = await response.json();
  assert.ok(error.reason);
}

const ids = (found) => found.results.map((one) => one.requestid);

// one, from the wish to the pin
const origins = ["/dns4/peer.example/tcp/4001/p2p/12D3KooWA"];
const asked = await mine.pinsPost({ pin: { cid: first, name: "One", origins, meta: { app: "a" } } });
assert.equal(asked.status, "queued");
assert.deepEqual([...asked.pin.origins], origins);
assert.deepEqual([...asked.delegates], []);
assert.ok(asked.created instanceof Date && !Number.isNaN(asked.created.valueOf()));
const pinned = await until(asked.requestid, "pinned");
assert.deepEqual([pinned.pin.cid, pinned.pin.name, pinned.pin.meta], [first, "One", { app: "a" }]);
assert.equal(pinned.created.valueOf(), asked.created.valueOf());

// many at once, and nothing is lost between pages
const wishes = more.map((cid) => mine.pinsPost({ pin: { cid, name: "more", meta: { app: "b" } } }));
const all = new Set((await Promise.all(wishes)).map((one) => one.requestid));
for (const requestid of all) await until(requestid, "pinned");
const seen = [];
for (let before; ; ) {
  const page = await mine.pinsGet({ name: "more", limit: 3, before });
  assert.equal(page.count, all.size - seen.length);
  if (page.results.length === 0) break;
  seen.push(...ids(page));
  before = page.results.at(-1).created;
}
assert.deepEqual([seen.length, new Set(seen)], [all.size, all]);

// filters
const never = await mine.pinsPost({ pin: { cid: nowhere } });
assert.deepEqual(ids(await mine.pinsGet({ cid: [first, nowhere] })), [asked.requestid]);
assert.deepEqual(ids(await mine.pinsGet({ status: ["queued", "pinning"] })), [never.requestid]);
assert.deepEqual((await mine.pinsGet({ status: ["failed"] })).count, 0);
assert.deepEqual(ids(await mine.pinsGet({ name: "one", match: "iexact" })), [asked.requestid]);
assert.deepEqual(ids(await mine.pinsGet({ name: "n", match: "partial" })), [asked.requestid]);
assert.equal((await mine.pinsGet({ meta: JSON.stringify({ app: "b" }) })).count, all.size);
assert.equal((await mine.pinsGet({ after: asked.created })).count, all.size);
assert.deepEqual(ids(await mine.pinsGet({ before: new Date(asked.created.valueOf() + 1) })), [asked.requestid]);

// another in its place
const moved = await mine.pinsRequestidPost({ requestid: asked.requestid, pin: { cid: second, name: "Two" } });
assert.notEqual(moved.requestid, asked.requestid);
await until(moved.requestid, "pinned");
await refused(mine.pinsRequestidGet({ requestid: asked.requestid }), 404);
assert.deepEqual(ids(await mine.pinsGet({ cid: [first] })), []);

// taken back; and what is somebody else's, or nobody's
await refused(service(other).pinsRequestidGet({ requestid: moved.requestid }), 404);
await refused(service(other).pinsRequestidDelete({ requestid: moved.requestid }), 404);
await refused(service("nobody").pinsGet({}), 401);
await refused(mine.pinsPost({ pin: { cid: "no cid" } }), 400);
for (const requestid of [moved.requestid, never.requestid, ...all]) await mine.pinsRequestidDelete({ requestid });
assert.equal((await mine.pinsGet({ status: ["queued", "pinning", "pinned", "failed"] })).count, 0);
console.log("done");
