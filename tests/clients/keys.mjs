// Keys made, used, listed, revoked.
import assert from "node:assert/strict";
import { collected, failure, file, sdk } from "./server.mjs";

const roost = sdk();
const made = await roost.keys.create({ keyName: "reader", permissions: { resources: ["org:files:read"] } });
assert.ok(made.JWT && made.pinata_api_key && made.pinata_api_secret);
const reader = sdk(made.JWT);
assert.deepEqual((await reader.files.private.list()).files, []);
assert.equal((await failure(reader.upload.private.file(file("x", "x")))).statusCode, 403);
assert.equal((await failure(reader.keys.create({ keyName: "more", permissions: { admin: true } }))).statusCode, 403);

const once = await roost.keys.create({ keyName: "once", permissions: { admin: true }, maxUses: 1 });
assert.equal((await sdk(once.JWT).upload.private.file(file("once", "once"))).size, 4);
assert.ok([401, 403].includes((await failure(sdk(once.JWT).upload.private.file(file("twice", "twice")))).statusCode));

const listed = await roost.keys.list().name("reader");
assert.deepEqual(listed.map((key) => [key.name, key.revoked]), [["reader", false]]);
assert.ok((await collected(roost.keys.list())).length >= 2);
assert.equal((await roost.keys.revoke([made.pinata_api_key]))[0].status, "Revoked");
assert.equal((await failure(reader.files.private.list())).statusCode, 401);
assert.equal((await roost.keys.list().revoked(true))[0].name, "reader");
console.log("done");
