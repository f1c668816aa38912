// What every journey begins with: the SDK as it was published, pointed at a server.
import { PinataSDK } from "pinata";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_GATEWAY: gateway } = process.env;

export const api = `http://api.localhost:${port}/v3`;
export const uploads = `http://uploads.localhost:${port}/v3`;
export const gatewayUrl = `http://${gateway}.gateways.localhost:${port}`;

export function sdk(jwt = key) {
  const made = new PinataSDK({
    pinataJwt: jwt,
    endpointUrl: api,
    uploadUrl: uploads,
    legacyUploadUrl: `http://api.localhost:${port}/pinning/pinFileToIPFS`,
  });
  made.config.pinataGateway = gatewayUrl; // given to the constructor, it would get `https://` in front
  return made;
}

export const file = (content, name, type) => new File([content], name, { type });

export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("It was to fail.");
}

export async function collected(list) {
  const found = [];
  for await (const one of list) found.push(one);
  return found;
}
