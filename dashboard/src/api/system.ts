import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type SystemState = components['schemas']['SystemRecord'];
export type Check = components['schemas']['CheckRecord'];
export type InstalledEngine = components['schemas']['InstalledEngineRecord'];

const REFRESH_MS = 10_000;

export const systemQuery = queryOptions({
  queryKey: ['system'],
  refetchInterval: REFRESH_MS,
  queryFn: ({ signal }) => body(api.GET('/v0/system', { signal })),
});

/** The checks of `roost doctor`. They start a container, so they run again on request only. */
export const checksQuery = queryOptions({
  queryKey: ['system', 'checks'],
  staleTime: Infinity,
  refetchInterval: false,
  queryFn: ({ signal }) => body(api.GET('/v0/system/checks', { signal })),
});

export const engineStatesQuery = queryOptions({
  queryKey: ['system', 'engines'],
  refetchInterval: false,
  queryFn: ({ signal }) => body(api.GET('/v0/system/engines', { signal })),
});

export const updateAgent = (agentId: string) =>
  body(api.POST('/v0/agents/{agentId}/update', { params: { path: { agentId } }, body: null }));
