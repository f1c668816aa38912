// What a gateway served, told by both SDKs; another tenant's numbers are its own.
import assert from "node:assert/strict";
import { PinataSDK } from "pinata-web3";
import { failure, file, gatewayUrl, sdk } from "./server.mjs";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_OTHER: other, ROOST_GATEWAY: gateway } = process.env;
const roost = sdk();
const today = new Date().toISOString().slice(0, 10);

const often = await roost.upload.public.file(file("asked for often", "often.txt"));
const large = await roost.upload.public.file(file("x".repeat(1000), "large.txt"));
const visit = (cid, headers) => fetch(`${gatewayUrl}/ipfs/${cid}`, { headers }).then((answer) => answer.text());
for (let time = 0; time < 3; time++) await visit(often.cid, { "User-Agent": "reader", Referer: "https://a.example/page" });
await visit(large.cid, { "User-Agent": "other reader" });

// An answer counts when its last byte has gone.
const counted = async () => (await roost.analytics.requests.days(1)).data.reduce((sum, one) => sum + one.requests, 0);
for (const deadline = Date.now() + 10_000; (await counted()) < 4 && Date.now() < deadline; );

const byRequests = [
  { value: often.cid, requests: 3, bandwidth: 45 },
  { value: large.cid, requests: 1, bandwidth: 1000 },
];
assert.deepEqual((await roost.analytics.requests.days(7).cid()).data, byRequests);
assert.deepEqual((await roost.analytics.bandwidth.days(7).cid()).data, [...byRequests].reverse());
assert.deepEqual((await roost.analytics.bandwidth.days(7).cid().sort("asc").limit(1)).data, [byRequests[0]]);
assert.deepEqual((await roost.analytics.requests.from(gatewayUrl).cid(large.cid)).data, [byRequests[1]]);

const fresh = () => sdk().analytics.requests.customDates(today, today).from(gateway);
assert.deepEqual((await fresh().userAgent()).data.map((one) => one.value), ["reader", "other reader"]);
assert.deepEqual((await fresh().userAgent("reader")).data, [{ value: "reader", requests: 3, bandwidth: 45 }]);
assert.deepEqual((await fresh().fileName()).data.map((one) => one.value), ["often.txt", "large.txt"]);
assert.deepEqual((await fresh().referer()).data.map((one) => one.value), ["https://a.example", "unknown"]);
assert.deepEqual((await fresh().country()).data, [{ value: "unknown", requests: 4, bandwidth: 1045 }]);
assert.deepEqual((await fresh().region("Bavaria")).data, []);

for (const interval of ["day", "week"]) {
  const domain = `${gateway}.gateways.localhost`;
  const all = await roost.analytics.summary({ domain, start: today, end: today, interval });
  assert.deepEqual([all.total_requests, all.total_bandwidth, all.time_periods.length], [4, 1045, 1]);
  if (interval === "day") assert.deepEqual(all.time_periods, [{ period_start_time: today, requests: 4, bandwidth: 1045 }]);
  const some = await roost.analytics.summary({ domain, start: today, end: today, interval }).cid(often.cid).sortBy("bandwidth").sort("asc").all();
  assert.deepEqual([some.total_requests, some.total_bandwidth], [3, 45]);
}

// The older SDK asks the same.
const older = new PinataSDK({ pinataJwt: key, endpointUrl: `http://api.localhost:${port}` });
const span = { domain: gateway, start: today, end: today };
assert.deepEqual(await older.gateways.topUsageAnalytics({ ...span, sortBy: "requests", attribute: "cid" }), byRequests);
assert.deepEqual(
  await older.gateways.topUsageAnalytics({ ...span, sortBy: "bandwidth", attribute: "user_agent" }).cid(often.cid),
  [{ value: "reader", requests: 3, bandwidth: 45 }],
);
const summed = await older.gateways.dateIntervalAnalytics({ ...span, interval: "week" }).sort("desc");
assert.deepEqual([summed.total_requests, summed.total_bandwidth], [4, 1045]);

// Nobody else's, and not without the scope.
const foreign = sdk(other);
assert.equal((await failure(foreign.analytics.requests.from(gateway).cid())).statusCode, 404);
assert.equal((await failure(foreign.analytics.summary({ ...span, interval: "day" }))).statusCode, 404);
const narrow = await roost.keys.create({ keyName: "narrow", permissions: { resources: ["org:files:read"] } });
assert.equal((await failure(sdk(narrow.JWT).analytics.requests.cid())).statusCode, 403);
const enough = await roost.keys.create({ keyName: "enough", permissions: { resources: ["org:analytics:read"] } });
assert.equal((await sdk(enough.JWT).analytics.requests.cid()).data.length, 2);
console.log("done");
