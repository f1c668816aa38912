import { queryOptions } from '@tanstack/react-query';

import type { ChannelConfiguration } from './channels';
import { api, body, ifMatch, type StoredText } from './client';
import type { components } from './schema';

type Schemas = components['schemas'];
export type PendingDevice = Schemas['PendingDeviceRecord'];
export type PairedDevice = Schemas['PairedDeviceRecord'];
export type AgentSecret = Schemas['AgentSecretRecord'];

const at = (agentId: string) => ({ params: { path: { agentId } } });

export const agentSecretsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'secrets'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/secrets', { ...at(agentId), signal })),
  });

export const allSecretsQuery = queryOptions({
  queryKey: ['secrets'],
  queryFn: ({ signal }) => body(api.GET('/v0/secrets', { signal })),
});

export const createTextSecret = async (name: string, value: string): Promise<string> =>
  (await body(api.POST('/v0/secrets', { body: { name, value } }))).secret.id;

export const attachSecret = (agentId: string, secretId: string) =>
  body(api.POST('/v0/agents/{agentId}/secrets', { ...at(agentId), body: { secretIds: [secretId] } }));

export const detachSecret = (agentId: string, secretId: string) =>
  body(api.DELETE('/v0/agents/{agentId}/secrets/{secretId}', { params: { path: { agentId, secretId } } }));

export const channelsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'channels'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/channels', { ...at(agentId), signal })),
  });

export const configureChannel = (agentId: string, channel: string, configuration: ChannelConfiguration) =>
  body(api.POST('/v0/agents/{agentId}/channels/{channel}', { params: { path: { agentId, channel } }, body: configuration }));

export const removeChannel = (agentId: string, channel: string) =>
  body(api.DELETE('/v0/agents/{agentId}/channels/{channel}', { params: { path: { agentId, channel } } }));

export const devicesQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'devices'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/devices', { ...at(agentId), signal })),
  });

export const approveDevice = (agentId: string, requestId: string) =>
  body(api.POST('/v0/agents/{agentId}/devices/{requestId}/approve', { params: { path: { agentId, requestId } } }));

export const approveAllDevices = (agentId: string) => body(api.POST('/v0/agents/{agentId}/devices/approve-all', at(agentId)));

export const configQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'config'],
    refetchInterval: false,
    queryFn: async ({ signal }): Promise<StoredText> => {
      const found = api.GET('/v0/agents/{agentId}/config', { ...at(agentId), signal });
      return { text: (await body(found)).config, etag: (await found).response.headers.get('etag') };
    },
  });

export const validateConfig = (agentId: string, config: string) =>
  body(api.POST('/v0/agents/{agentId}/config/validate', { ...at(agentId), body: { config } }));

export const saveConfig = (agentId: string, config: string, etag: string | null) =>
  body(api.PUT('/v0/agents/{agentId}/config', { ...at(agentId), body: { config }, headers: ifMatch(etag) }));
