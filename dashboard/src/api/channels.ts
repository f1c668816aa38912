import { api, body } from './client';
import { openEvents, waitToRetry } from './connections';
import { ApiError } from './errors';
import type { components } from './schema';

export type Channel = components['schemas']['ChannelRecord'];
export type ChannelList = components['schemas']['ChannelList'];
export type PairingRequest = components['schemas']['PairingRequestRecord'];
export type ChannelConfiguration = components['schemas']['ChannelConfiguration'];
export type ChannelAbility = components['schemas']['ChannelAbilityRecord'];
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

/** Let the sender of a request, or the person who got a code, write to the bot. */
export const approveRequest = (agentId: string, channel: ChannelName, requestId: string) =>
  body(
    api.POST('/v0/agents/{agentId}/channels/{channel}/pairing/{requestId}/approve', {
      params: { path: { agentId, channel, requestId } },
    }),
  );
