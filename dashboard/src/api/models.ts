import { queryOptions } from '@tanstack/react-query';

import { changeSecret, createSecret } from './access';
import { attachSecret } from './agentData';
import { api, body } from './client';
import { PROVIDERS, type ProviderId } from './providers';

const STAND_IN = 'scripted';

/** Raised when a provider did not list its models with a new key. */
export class KeyNotAccepted extends Error {}

export const agentModelsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'models'],
    refetchInterval: false,
    queryFn: ({ signal }) =>
      body(api.GET('/v0/agents/{agentId}/models', { params: { path: { agentId } }, signal })),
  });

export const modelServersQuery = queryOptions({
  queryKey: ['model-servers'],
  refetchInterval: false,
  staleTime: 0,
  queryFn: ({ signal }) => body(api.GET('/v0/model-servers', { signal })),
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

/** Store a provider's key as a secret, give it to the agent, see whether it works, and restart the agent with it. */
export async function connectProvider(agentId: string, provider: ProviderId, key: string): Promise<void> {
  const path = { params: { path: { agentId } } };
  const name = PROVIDERS.find(({ id }) => id === provider)!.secret;
  const { secrets } = await body(api.GET('/v0/secrets'));
  const known = secrets.find((secret) => secret.name === name);
  if (known) await changeSecret(known.id, key);
  const id = known?.id ?? (await createSecret({ name, value: key, type: 'secret' })).secret.id;
  await attachSecret(agentId, id);
  const { models } = await body(api.GET('/v0/agents/{agentId}/models', path));
  if (!models.some((model) => model.provider === provider)) throw new KeyNotAccepted();
  await body(api.POST('/v0/agents/{agentId}/restart', path));
}
