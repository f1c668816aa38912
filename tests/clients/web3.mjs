// The older SDK: everything is public there, and goes to addresses without a version.
import assert from "node:assert/strict";
import { PinataSDK } from "pinata-web3";
import { file, gatewayUrl } from "./house.mjs";

const { ROOST_PORT: port, ROOST_KEY: key } = process.env;
const roost = new PinataSDK({ pinataJwt: key, endpointUrl: `http://api.localhost:${port}` });
roost.config.pinataGateway = gatewayUrl;

assert.match((await roost.testAuthentication()).message, /^Congratulations/);
const one = await roost.upload.file(file("hello world", "hello.txt")).addMetadata({ name: "greeting", keyValues: { a: "1" } });
assert.equal(one.IpfsHash, "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
assert.equal(one.PinSize, 11);
const json = await roost.upload.json({ a: 1 });
assert.deepEqual((await roost.gateways.get(json.IpfsHash)).data, { a: 1 });
assert.ok((await roost.upload.base64(Buffer.from("based").toString("base64"))).IpfsHash);
const folder = await roost.upload.fileArray([file("1", "1.txt"), file("2", "2.txt")]);
assert.match(folder.IpfsHash, /^bafybei/);
const listed = await roost.listFiles().name("greeting");
assert.deepEqual(listed.map((row) => row.ipfs_pin_hash), [one.IpfsHash]);
assert.ok((await roost.usage.pinnedFileCount()) >= 4);
assert.ok((await roost.usage.totalStorageSize()) > 20);
await roost.updateMetadata({ cid: one.IpfsHash, name: "other" });
assert.equal((await roost.listFiles().name("other"))[0].ipfs_pin_hash, one.IpfsHash);
assert.equal((await roost.unpin([one.IpfsHash]))[0].status, "OK");
assert.equal((await roost.listFiles().name("other")).length, 0);
console.log("done");
