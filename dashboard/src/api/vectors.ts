import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';
import { inner } from './storage';

export type FileVectors = components['schemas']['VectorsRecord'];
const POLL_MS = 1_500;

const isPending = ({ state }: FileVectors) => state === 'queued' || state === 'indexing';

/** The files of a group with the states of their vectors; asked again while some are being made. */
export const vectorFilesQuery = (groupId: string) =>
  infiniteQueryOptions({
    queryKey: ['files', 'vectors', groupId],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      inner(
        api.GET('/v3/vectorize/groups/{id}/files', {
          params: { path: { id: groupId }, query: { limit: 100, ...(pageParam && { pageToken: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.files.some(isPending)) ? POLL_MS : false),
  });

export const groupAgentsQuery = (groupId: string) =>
  queryOptions({
    queryKey: ['groups', 'agents', groupId],
    queryFn: ({ signal }) => inner(api.GET('/v3/vectorize/groups/{id}/agents', { params: { path: { id: groupId } }, signal })),
  });

export const vectorize = (fileId: string) =>
  body(api.POST('/v3/vectorize/files/{file_id}', { params: { path: { file_id: fileId } } }));

export const deleteVectors = (fileId: string) =>
  body(api.DELETE('/v3/vectorize/files/{file_id}', { params: { path: { file_id: fileId } } }));

export const searchGroup = (groupId: string, text: string) =>
  inner(api.POST('/v3/vectorize/groups/{id}/query', { params: { path: { id: groupId } }, body: { text, limit: 10 } }));

/** Let an agent search a group, or no longer. */
export function grantGroup(groupId: string, agentId: string, isAllowed: boolean): Promise<unknown> {
  const path = { params: { path: { id: groupId, agentId } } };
  return isAllowed
    ? body(api.PUT('/v3/vectorize/groups/{id}/agents/{agentId}', path))
    : body(api.DELETE('/v3/vectorize/groups/{id}/agents/{agentId}', path));
}
