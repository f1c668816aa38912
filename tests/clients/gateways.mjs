// Reading public content through a gateway, with its kinds of content and pictures.
import assert from "node:assert/strict";
import { failure, file, gatewayUrl, sdk } from "./server.mjs";

const { upload, gateways } = sdk();

const text = await upload.public.file(file("plain words", "a.txt", "text/plain"));
assert.deepEqual(await gateways.public.get(text.cid), { data: "plain words", contentType: "text/plain" });
const json = await upload.public.json({ a: 1 });
assert.deepEqual((await gateways.public.get(json.cid)).data, { a: 1 });
const bytes = await upload.public.file(file(new Uint8Array([0, 1, 2, 255]), "a.bin"));
assert.equal((await gateways.public.get(bytes.cid)).data.size, 4);
assert.equal(await gateways.public.convert(`ipfs://${text.cid}`), `${gatewayUrl}/ipfs/${text.cid}`);

// Private content is not to be had there.
const secret = await upload.private.file(file("a secret", "s.txt"));
assert.equal((await failure(gateways.public.get(secret.cid))).statusCode, 404);

// A picture, made smaller on the way.
const picture = await upload.public.file(file(Buffer.from(process.env.ROOST_PICTURE, "base64"), "a.png", "image/png"));
const small = await gateways.public.get(picture.cid).optimizeImage({ width: 8, format: "webp" });
assert.equal(small.contentType, "image/webp");
console.log("done");
