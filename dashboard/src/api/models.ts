import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';

const STAND_IN = 'scripted';

export const agentModelsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'models'],
    refetchInterval: false,
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/models', { params: { path: { agentId } }, signal })),
  });

export const modelServersQuery = queryOptions({
  queryKey: ['model-servers'],
  refetchInterval: false,
  staleTime: 0,
  queryFn: ({ signal }) => body(api.GET('/v0/model-servers', { signal })),
});

export const modelProvidersQuery = queryOptions({
  queryKey: ['model-providers'],
  staleTime: Infinity,
  queryFn: ({ signal }) => body(api.GET('/v0/model-providers', { signal })),
});

/** Return the model that an agent uses: its own if that is offered, else the first; null for the stand-in. */
export function usedModel(
  models: readonly { readonly id: string; readonly provider: string }[],
  chosen: string | null | undefined,
): string | null {
  const used = models.find(({ id }) => id === chosen) ?? models[0];
  return !used || used.provider === STAND_IN ? null : used.id;
}

export const connectModelServer = (agentId: string, provider: string, model: string) =>
  body(api.PUT('/v0/agents/{agentId}/model-server', { params: { path: { agentId } }, body: { provider, model } }));

/** Have a provider's key tried, and if it works, stored for the agent and for the others that use the present one. */
export const connectProvider = (agentId: string, provider: string, key: string, replaceFor: readonly string[]) =>
  body(
    api.PUT('/v0/agents/{agentId}/model-key', {
      params: { path: { agentId } },
      body: { provider, key, replaceFor: [...replaceFor] },
    }),
  );
