import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import { ApiError } from './errors';
import { inner, type StoredFile } from './storage';

/** A wallet of the browser (EIP-1193). */
interface Provider {
  request(call: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
}
export interface Wallet {
  readonly id: string;
  readonly name: string;
  readonly provider: Provider;
}

declare global {
  interface Window {
    readonly ethereum?: Provider;
  }
}

const ANNOUNCE_MS = 150;
const MAINNET = '0x1';
const USER_REJECTED = 4001;
const DOMAIN = { name: 'Sign Content', version: '1.0.0', chainId: 1 };
const TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'version', type: 'string' },
    { name: 'chainId', type: 'uint256' },
  ],
  Sign: [
    { name: 'address', type: 'address' },
    { name: 'cid', type: 'string' },
    { name: 'date', type: 'string' },
  ],
};

/** The person declined in the wallet, which is no error. */
export class WalletDeclined extends Error {}

/** Return the wallets that announce themselves (EIP-6963), else the one at `window.ethereum`. */
export async function findWallets(): Promise<readonly Wallet[]> {
  const found = new Map<string, Wallet>();
  const announced = (event: Event) => {
    const wallet = readAnnouncement((event as CustomEvent<unknown>).detail);
    if (wallet) found.set(wallet.id, wallet);
  };
  addEventListener('eip6963:announceProvider', announced);
  dispatchEvent(new Event('eip6963:requestProvider'));
  await new Promise((resolve) => setTimeout(resolve, ANNOUNCE_MS));
  removeEventListener('eip6963:announceProvider', announced);
  if (found.size === 0 && window.ethereum) return [{ id: 'ethereum', name: '', provider: window.ethereum }];
  return [...found.values()];
}

function readAnnouncement(detail: unknown): Wallet | null {
  if (typeof detail !== 'object' || detail === null || !('info' in detail) || !('provider' in detail)) return null;
  const info = detail.info as { uuid?: unknown; name?: unknown } | null;
  if (typeof info?.uuid !== 'string' || typeof info.name !== 'string') return null;
  return { id: info.uuid, name: info.name, provider: detail.provider as Provider };
}

export const walletsQuery = queryOptions({
  queryKey: ['wallets'],
  staleTime: Infinity,
  refetchInterval: false,
  queryFn: findWallets,
});

const at = ({ network, cid }: StoredFile) => ({ params: { path: { network, cid } } });

/** The signature of a file's CID, or null if it has none. */
export const signatureQuery = (file: StoredFile) =>
  queryOptions({
    queryKey: ['signatures', file.network, file.cid],
    queryFn: async ({ signal }) => {
      try {
        return await inner(api.GET('/v3/files/{network}/signature/{cid}', { ...at(file), signal }));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });

/** Let a wallet sign a file's CID, and store the signature, which the server verifies. Raises WalletDeclined. */
export async function signFile(file: StoredFile, { provider }: Wallet): Promise<void> {
  const { address, signature } = await askWallet(provider, file);
  await body(api.POST('/v3/files/{network}/signature/{cid}', { ...at(file), body: { address, signature } }));
}

export const removeSignature = (file: StoredFile) => api.DELETE('/v3/files/{network}/signature/{cid}', at(file));

async function askWallet(provider: Provider, file: StoredFile): Promise<{ address: string; signature: string }> {
  try {
    const [address] = (await provider.request({ method: 'eth_requestAccounts' })) as readonly string[];
    if (typeof address !== 'string') throw new WalletDeclined();
    const chain = await provider.request({ method: 'eth_chainId' });
    const signature = await provider.request(signingCall(file, address, chain));
    return { address, signature: String(signature) };
  } catch (error) {
    if (isRejection(error)) throw new WalletDeclined();
    throw error instanceof Error ? error : new Error(readMessage(error));
  }
}

/**
 * Return the call that signs a file. Wallets sign typed data only for the chain that is chosen in them; on another one,
 * they sign the CID as a text, which says nothing about a date.
 */
export function signingCall({ cid, created_at }: Pick<StoredFile, 'cid' | 'created_at'>, address: string, chain: unknown) {
  if (chain !== MAINNET) return { method: 'personal_sign', params: [toHex(cid), address] };
  const message = { address, cid, date: created_at };
  const data = JSON.stringify({ types: TYPES, domain: DOMAIN, primaryType: 'Sign', message });
  return { method: 'eth_signTypedData_v4', params: [address, data] };
}

function toHex(text: string): string {
  return `0x${Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function isRejection(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === USER_REJECTED;
}

function readMessage(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
