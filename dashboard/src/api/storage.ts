import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type Network = components['schemas']['ContentNetwork'];
export type StoredFile = components['schemas']['FileItem'];
export type Group = components['schemas']['GroupRecord'];
export interface FileFilter {
  readonly network: Network;
  readonly name: string;
  readonly group: string;
}

/** Return the content of the storage API's envelope. */
export async function inner<T>(answer: Promise<{ data?: { data: T } }>): Promise<T> {
  return (await body(answer)).data;
}

export const filesQuery = ({ network, name, group }: FileFilter) =>
  infiniteQueryOptions({
    queryKey: ['files', network, name, group],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      inner(
        api.GET('/v3/files/{network}', {
          params: {
            path: { network },
            query: { limit: 200, ...(name && { name }), ...(group && { group }), ...(pageParam && { pageToken: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
  });

export const limitsQuery = queryOptions({
  queryKey: ['files', 'limits'],
  queryFn: ({ signal }) => inner(api.GET('/v3/files/limits', { signal })),
});

/** The number of files on each network. */
export const storageTotalsQuery = queryOptions({
  queryKey: ['files', 'totals'],
  queryFn: ({ signal }) => inner(api.GET('/v3/files/totals', { signal })),
});

interface LoadedPages {
  readonly data?: { readonly pages: readonly { readonly files?: readonly unknown[]; readonly cids?: readonly unknown[] }[] };
  readonly hasNextPage: boolean;
}

/** Return the number of the files that are loaded, with a plus sign if there are more. */
export function countLoaded({ data, hasNextPage }: LoadedPages): string {
  const count = data?.pages.reduce((sum, { files, cids }) => sum + (files ?? cids ?? []).length, 0) ?? 0;
  return `${count}${hasNextPage ? '+' : ''}`;
}

export const renameFile = ({ network, id }: StoredFile, name: string) =>
  inner(api.PUT('/v3/files/{network}/{id}', { params: { path: { network, id } }, body: { name } }));

export const deleteStoredFile = ({ network, id }: StoredFile) =>
  body(api.DELETE('/v3/files/{network}/{id}', { params: { path: { network, id } } }));

export const groupsQuery = (network: Network) =>
  infiniteQueryOptions({
    queryKey: ['groups', network],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      inner(
        api.GET('/v3/groups/{network}', {
          params: { path: { network }, query: { limit: 100, ...(pageParam && { pageToken: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
  });

export const groupQuery = (network: Network, id: string) =>
  queryOptions({
    queryKey: ['groups', network, id],
    queryFn: ({ signal }) => inner(api.GET('/v3/groups/{network}/{id}', { params: { path: { network, id } }, signal })),
  });

export const createGroup = (network: Network, name: string) =>
  inner(api.POST('/v3/groups/{network}', { params: { path: { network } }, body: { name } }));

export const renameGroup = (network: Network, id: string, name: string) =>
  inner(api.PUT('/v3/groups/{network}/{id}', { params: { path: { network, id } }, body: { name } }));

export const deleteGroup = (network: Network, id: string) =>
  body(api.DELETE('/v3/groups/{network}/{id}', { params: { path: { network, id } } }));

/** Put a file into a group, or into none if `group` is empty. */
export async function moveToGroup({ network, id, group_id }: StoredFile, group: string): Promise<void> {
  const path = (of: string) => ({ params: { path: { network, id: of, file_id: id } } });
  if (group) await api.PUT('/v3/groups/{network}/{id}/ids/{file_id}', path(group));
  else if (group_id) await api.DELETE('/v3/groups/{network}/{id}/ids/{file_id}', path(group_id));
}

const LINK_SECONDS = 3_600;

/** Return an address of a private file that works for an hour. */
export const downloadLink = (gatewayUrl: string, cid: string) =>
  inner(
    api.POST('/v3/files/private/download_link', {
      body: { url: `${gatewayUrl}/files/${cid}`, expires: LINK_SECONDS, date: Math.floor(Date.now() / 1000), method: 'GET' },
    }),
  );
