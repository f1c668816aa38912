import { api, body } from './client';
import { openEvents, waitToRetry } from './connections';
import { ApiError } from './errors';
import type { components } from './schema';

export type Channel = components['schemas']['ChannelRecord'];
export type ChannelList = components['schemas']['ChannelList'];
export type PairingRequest = components['schemas']['PairingRequestRecord'];
export type ChannelConfiguration = components['schemas']['ChannelConfiguration'];
export const CHANNELS = ['telegram', 'slack', 'discord', 'whatsapp'] as const;
export type ChannelName = (typeof CHANNELS)[number];

/** Who may write: strangers who were approved, those on the list, or everyone. */
export type Access = 'pairing' | 'listed' | 'open';

export interface ChannelDraft {
  readonly botToken: string;
  readonly appToken: string;
  readonly access: Access;
  readonly allowFrom: readonly string[];
}

const ANYONE = '*';
const LINKED_DEVICE = 'linked-device'; // WhatsApp has no token, but the API asks for a text
const ENGINE_PROGRAMS: Readonly<Record<string, string>> = {
  openclaw: '/engine/node/bin/node /engine/oc/node_modules/openclaw/openclaw.mjs',
  hermes: '/engine/hermes/bin/python3 -m hermes_cli.main',
};

/** Return what a channel is set to; a new one admits those who are approved. */
export function channelDraft(channel: Pick<Channel, 'dmPolicy' | 'allowFrom'> | null): ChannelDraft {
  const allowFrom = (channel?.allowFrom ?? []).filter((id) => id !== ANYONE);
  const open: Access = allowFrom.length > 0 && allowFrom.length === channel?.allowFrom.length ? 'listed' : 'open';
  return { botToken: '', appToken: '', access: channel?.dmPolicy === 'open' ? open : 'pairing', allowFrom };
}

/** Return the request for a draft. Empty tokens keep the present ones; an empty list with `open` admits everyone. */
export function toConfiguration(name: ChannelName, draft: ChannelDraft, isNew: boolean): ChannelConfiguration {
  const botToken = draft.botToken.trim() || (isNew && name === 'whatsapp' ? LINKED_DEVICE : '');
  const appToken = draft.appToken.trim();
  return {
    dmPolicy: draft.access === 'pairing' ? 'pairing' : 'open',
    allowFrom: draft.access === 'open' ? [] : [...draft.allowFrom],
    ...(botToken && { botToken }),
    ...(appToken && { appToken }),
  };
}

/** Return whether a draft has what its channel needs. */
export function isComplete(name: ChannelName, draft: ChannelDraft, isNew: boolean): boolean {
  if (draft.access === 'listed' && draft.allowFrom.length === 0) return false;
  if (!isNew || name === 'whatsapp') return true;
  return draft.botToken.trim() !== '' && (name !== 'slack' || draft.appToken.trim() !== '');
}

/** Return whether a bot's token was stored without an answer of its platform, and does not work so far. */
export const isUnchecked = (channel: Channel): boolean =>
  channel.botUsername === null && !channel.connected && !('linked' in channel); // a phone that is linked has no token

/** Return whether the engine gives strangers codes on a channel. */
export function hasPairingCodes(engine: string, name: ChannelName): boolean {
  return Object.hasOwn(ENGINE_PROGRAMS, engine) && !(engine === 'hermes' && name === 'discord');
}

/** Return whether the engine tells when messages arrive. */
export const tellsMessages = (engine: string): boolean => engine !== 'hermes';

/** Give `onList` the channels of an agent now and at each change. Connects again until `signal` aborts or they are gone. */
export async function followChannels(agentId: string, onList: (list: ChannelList) => void, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      for await (const { event, data } of await openEvents(`/v0/agents/${encodeURIComponent(agentId)}/channels/watch`, signal)) {
        attempt = 0;
        if (event !== 'error') onList(JSON.parse(data) as ChannelList);
      }
    } catch (error) {
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return;
    }
    await waitToRetry(attempt, signal);
  }
}

/** Let the sender of a request write to the bot. */
export const approveRequest = (agentId: string, channel: ChannelName, requestId: string) =>
  body(
    api.POST('/v0/agents/{agentId}/channels/{channel}/pairing/{requestId}/approve', {
      params: { path: { agentId, channel, requestId } },
    }),
  );

/** Return the engine's own command that approves a code; null for what is no code. */
export function pairingCommand(engine: string, name: ChannelName, code: string): string | null {
  return hasPairingCodes(engine, name) && /^[A-Za-z0-9]{1,64}$/.test(code)
    ? `${ENGINE_PROGRAMS[engine]} pairing approve ${name} ${code}`
    : null;
}

/** Let the user who got this code write to the bot. Raises an error with the words of the engine. */
export async function approvePairing(agentId: string, engine: string, name: ChannelName, code: string): Promise<void> {
  const command = pairingCommand(engine, name, code.trim());
  if (command === null) throw new Error(code);
  const done = await body(api.POST('/v0/agents/{agentId}/console/exec', { params: { path: { agentId } }, body: { command } }));
  if (done.exitCode !== 0) throw new Error((done.stderr || done.stdout).trim());
}
