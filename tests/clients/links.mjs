// Addresses that let somebody without a key upload, and read.
import assert from "node:assert/strict";
import { failure, file, sdk } from "./server.mjs";

const roost = sdk();
const guest = sdk("undefined");
const { upload, gateways, files, groups } = roost;

// Uploading: one file, JSON, base64, a folder; all without a credential that counts.
const group = await groups.private.create({ name: "guests" });
const sign = (more) => upload.private.createSignedURL({ expires: 60, ...more });
const one = await guest.upload.private
  .file(file("from a guest", "guest.txt"))
  .url(await sign({ name: "named", groupId: group.id, keyvalues: { by: "guest" } }));
assert.deepEqual([one.network, one.group_id, one.keyvalues.by], ["private", group.id, "guest"]);
assert.equal((await files.private.get(one.id)).cid, one.cid);
const json = await guest.upload.public.json({ b: 1 }).url(await upload.public.createSignedURL({ expires: 60 }));
assert.equal((await files.public.get(json.id)).mime_type, "application/json");
const based = await guest.upload.private.base64(Buffer.from("based").toString("base64")).url(await sign());
assert.equal((await files.private.get(based.id)).size, 5);
const folder = await guest.upload.public
  .fileArray([file("1", "1.txt"), file("2", "2.txt")])
  .url(await upload.public.createSignedURL({ expires: 60, forDirectory: true }));
assert.equal((await files.public.get(folder.id)).number_of_files, 2);

// What an address does not let in.
const picture = await sign({ mimeTypes: ["image/*"] });
const refused = await failure(guest.upload.private.file(file("no picture", "a.png", "image/png")).url(picture));
assert.match(refused.message, /MIME type/);
const small = await sign({ maxFileSize: 4 });
assert.equal((await failure(guest.upload.private.file(file("too long", "a")).url(small))).statusCode, 413);
const bent = (await sign()).replace(/X-Expires=\d+/, "X-Expires=999999");
assert.ok([401, 403].includes((await failure(guest.upload.private.file(file("x", "x")).url(bent))).statusCode));

// Reading: the SDK's own private get, and a link to hand on.
const got = await gateways.private.get(one.cid);
assert.equal(got.data, "from a guest");
const link = await gateways.private.createAccessLink({ cid: one.cid, expires: 60 });
assert.equal(await (await fetch(link)).text(), "from a guest");
assert.equal((await fetch(link.split("?")[0])).ok, false);
assert.equal((await fetch(link.replace(/X-Expires=\d+/, "X-Expires=999999"))).ok, false);
console.log("done");
