// The protocol's own client, as it was published: parts, an upload that is left and found again, one that is ended.
import assert from "node:assert/strict";
import { Upload } from "tus-js-client";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_SIGNED: signed, ROOST_WANTED: wanted, ROOST_WHOLE: whole } = process.env;
const endpoint = `http://uploads.localhost:${port}/v3/files`;
const headers = { Authorization: `Bearer ${key}` };
const content = Buffer.alloc(3_000_000);
for (let at = 0; at + 4 <= content.length; at += 4_096) content.writeUInt32LE(at, at);

function upload(options, leaveAt = Infinity) {
  return new Promise((resolve, reject) => {
    let cid = null;
    const made = new Upload(content, {
      endpoint,
      headers,
      retryDelays: [0, 100, 500, 1000],
      metadata: { filename: "parts.bin" },
      onAfterResponse: (_, response) => {
        cid = response.getHeader("upload-cid") ?? cid;
      },
      onChunkComplete: async (_, sent) => {
        if (sent >= leaveAt && sent < content.length) {
          await made.abort();
          resolve({ url: made.url, sent });
        }
      },
      onSuccess: () => resolve({ url: made.url, cid }),
      onError: reject,
      ...options,
    });
    made.start();
  });
}

const left = await upload({ chunkSize: 400_000 }, 1_000_000);
assert.ok(left.sent >= 1_000_000 && left.sent < content.length);
const parts = await upload({ chunkSize: 700_000, uploadUrl: left.url });
assert.equal(parts.cid, wanted);
assert.equal(parts.url, left.url);

assert.equal((await upload({ uploadDataDuringCreation: true, metadata: { filename: "whole.bin", cid_version: "v0" } })).cid, whole);

const overridden = await upload({ overridePatchMethod: true, chunkSize: 1_000_000, metadata: { filename: "posted.bin" } });
assert.equal(overridden.cid, wanted);

const later = await upload({ uploadLengthDeferred: true, chunkSize: 1_000_000, metadata: { network: "public" } });
assert.equal(later.cid, wanted);

const anybody = await upload({ endpoint: signed, headers: {}, chunkSize: 1_000_000, metadata: {} });
assert.equal(anybody.cid, wanted);

const ended = await upload({ chunkSize: 400_000 }, 400_000);
await Upload.terminate(ended.url, {});
assert.equal((await fetch(ended.url, { method: "HEAD" }).catch(() => ({ status: 404 }))).status, 404);
console.log("done");
