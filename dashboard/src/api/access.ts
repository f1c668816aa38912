import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type Secret = components['schemas']['SecretListItem'];
export type SecretKind = components['schemas']['SecretKind'];
export type ApiKey = components['schemas']['KeyRecord'];

export const secretsQuery = queryOptions({
  queryKey: ['secrets'],
  queryFn: ({ signal }) => body(api.GET('/v0/secrets', { signal })),
});

export const createSecret = (given: { name: string; value: string; type: SecretKind }) =>
  body(api.POST('/v0/secrets', { body: given }));

export const changeSecret = (id: string, value: string) =>
  body(api.PUT('/v0/secrets/{id}', { params: { path: { id } }, body: { value } }));

export const deleteSecret = (id: string) => body(api.DELETE('/v0/secrets/{id}', { params: { path: { id } } }));

/** The keys that are not revoked, `KEY_PAGE` at a time. */
export const keysQuery = (offset: number) =>
  queryOptions({
    queryKey: ['keys', offset],
    queryFn: ({ signal }) => body(api.GET('/v3/pinata/keys', { params: { query: { revoked: false, offset } }, signal })),
  });

/** Create a key: unrestricted if `scopes` is null. Its token is in this answer only. */
export const createKey = (name: string, scopes: readonly string[] | null, maxUses: number | null) =>
  body(
    api.POST('/v3/pinata/keys', {
      body: { keyName: name, permissions: scopes === null ? { admin: true } : { resources: [...scopes] }, maxUses },
    }),
  );

/** The agents whose gateway tokens the holder of a key has read; they outlive the key. */
export const tokenReadsQuery = (key: string) =>
  queryOptions({
    queryKey: ['keys', 'token-reads', key],
    staleTime: 0,
    queryFn: ({ signal }) => body(api.GET('/v0/keys/{key}/token-reads', { params: { path: { key } }, signal })),
  });

export const revokeKey = (key: string, rotateTokens: boolean) =>
  body(api.POST('/v0/keys/{key}/revoke', { params: { path: { key } }, body: { rotateTokens } }));
