import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type Snapshot = components['schemas']['SnapshotRecord'];

export const snapshotsQuery = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ['agents', agentId, 'snapshots'],
    initialPageParam: 1,
    queryFn: ({ signal, pageParam: page }) =>
      body(api.GET('/v0/agents/{agentId}/snapshots', { params: { path: { agentId }, query: { page } }, signal })),
    getNextPageParam: (last, _, page) => (last.hasMore ? page + 1 : undefined),
  });

export const comparisonQuery = (agentId: string, from: string, to: string, path?: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'comparison', from, to, path ?? null],
    staleTime: Infinity, // content of an address never changes
    refetchInterval: false,
    queryFn: ({ signal }) =>
      body(
        api.GET('/v0/agents/{agentId}/snapshots/diff', {
          params: { path: { agentId }, query: { from, to, ...(path !== undefined && { path }) } },
          signal,
        }),
      ),
  });

export const takeSnapshot = (agentId: string) =>
  body(api.POST('/v0/agents/{agentId}/snapshots/sync', { params: { path: { agentId } } }));

export const labelSnapshot = (agentId: string, snapshotCid: string, label: string | null) =>
  body(
    api.PUT('/v0/agents/{agentId}/snapshots/{snapshotCid}/label', { params: { path: { agentId, snapshotCid } }, body: { label } }),
  );

export const restoreSnapshot = (agentId: string, { snapshotCid, snapshotId }: Snapshot) =>
  body(api.POST('/v0/agents/{agentId}/snapshots/reset', { params: { path: { agentId } }, body: { snapshotCid, snapshotId } }));
