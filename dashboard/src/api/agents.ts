import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

const MEMORY_POLL_MS = 15_000;
/** Servers tell each other of uses once a minute, and uses are no events. */
export const USE_POLL_MS = 30_000;
export type AgentSummary = components['schemas']['AgentRecord'];
export type AgentDetail = components['schemas']['AgentDetail'];
export type Agent = AgentDetail['agent'];
export type AgentState = AgentSummary['status'];

export const agentsQuery = queryOptions({ queryKey: ['agents'], queryFn: ({ signal }) => body(api.GET('/v0/agents', { signal })) });

/** Bytes of memory by agent, of those that run and whose memory is measured. */
export const memoryQuery = queryOptions({
  queryKey: ['agents', 'memory'],
  refetchInterval: MEMORY_POLL_MS,
  queryFn: async ({ signal }) => {
    const { agents } = await body(api.GET('/v0/agents/memory', { signal }));
    return new Map(agents.map(({ agentId, memoryBytes }) => [agentId, memoryBytes]));
  },
});

export const agentQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}', { params: { path: { agentId } }, signal })),
  });

export const changeProfile = (agentId: string, changed: Readonly<Record<string, string | null>>) =>
  body(api.PATCH('/v0/agents/{agentId}/platform/metadata', { params: { path: { agentId } }, body: changed }));

export const enginesQuery = queryOptions({
  queryKey: ['engines'],
  queryFn: ({ signal }) => body(api.GET('/v0/agents/engines', { signal })),
});

export const updateQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'update'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/update', { params: { path: { agentId } }, signal })),
    staleTime: 300_000,
    refetchInterval: false,
  });

export const templatesQuery = queryOptions({
  queryKey: ['templates', 'public'],
  queryFn: ({ signal }) => body(api.GET('/v0/public-templates', { params: { query: { limit: 100 } }, signal })),
});

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: ({ signal }) => body(api.GET('/v0/llm/v1/models', { signal })),
});

/** Open the page of the agent's own in a new window, signed in. */
export async function openAgentPage(agentId: string): Promise<void> {
  const { url } = await body(api.POST('/v0/agents/{agentId}/sign-in-link', { params: { path: { agentId } } }));
  window.open(url, '_blank', 'noopener');
}
