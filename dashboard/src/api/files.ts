import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { api, body, ifMatch, sendTo, type StoredText } from './client';
import type { components } from './schema';

export type FileEntry = components['schemas']['FileEntryRecord'];

/** Files above this size are downloaded instead of edited. */
export const EDIT_LIMIT = 1 << 20;
/** Images above this size are downloaded instead of shown. */
const IMAGE_LIMIT = 16 << 20;
const IMAGE_TYPES: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  gif: 'image/gif',
  ico: 'image/x-icon',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
};
const PAGE_LIMIT = 5;

export interface Folder {
  readonly entries: readonly FileEntry[];
  /** There are more entries than are shown. */
  readonly isCut: boolean;
}

/** The content of a file with its entity tag, or why it is not shown as text. */
export type FileText = StoredText | { readonly reason: 'large' | 'binary' };

export const folderQuery = (agentId: string, path: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'files', 'folder', path],
    queryFn: async ({ signal }): Promise<Folder> => {
      const entries: FileEntry[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < PAGE_LIMIT; page += 1) {
        const query: { path: string; cursor?: string } = { path: path || '.', ...(cursor && { cursor }) };
        const found: components['schemas']['FileListRecord'] = await body(
          api.GET('/v0/agents/{agentId}/files/list', { params: { path: { agentId }, query }, signal }),
        );
        entries.push(...found.entries);
        cursor = found.nextCursor;
        if (cursor === null) break;
      }
      return { entries: sortEntries(entries), isCut: cursor !== null };
    },
  });

/** The text of a file. While a newer version is loaded, the one before stays. */
export const fileTextQuery = (agentId: string, entry: FileEntry) =>
  queryOptions({
    queryKey: ['agents', agentId, 'files', 'text', entry.path, entry.modifiedAt, entry.size],
    staleTime: Infinity,
    refetchInterval: false,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => readText(agentId, entry, signal),
  });

export async function readText(agentId: string, { path, size }: FileEntry, signal?: AbortSignal): Promise<FileText> {
  if (size > EDIT_LIMIT) return { reason: 'large' };
  const response = await sendTo(contentAddress(agentId, path), signal ? { signal } : {});
  return decodeText(new Uint8Array(await response.arrayBuffer()), response.headers.get('etag'));
}

/** Load an image. Its key is outside of the agent's, so that events of the agent do not load it again. */
export const fileImageQuery = (agentId: string, entry: FileEntry) =>
  queryOptions({
    queryKey: ['images', agentId, entry.path, entry.modifiedAt, entry.size],
    staleTime: Infinity,
    gcTime: 0,
    refetchInterval: false,
    queryFn: async () => new Blob([await fileContent(agentId, entry.path)], { type: imageType(entry)! }),
  });

/** Return the media type of a file that is shown as an image, null for another one. */
export function imageType({ path, size }: FileEntry): string | null {
  return size <= IMAGE_LIMIT ? (IMAGE_TYPES[extensionOf(path)] ?? null) : null;
}

/** Return whether a text file has a rendered preview. */
export const hasPreview = ({ path }: FileEntry): boolean => ['md', 'markdown', 'svg'].includes(extensionOf(path));

/** Return folders first, then files, each by name. */
export function sortEntries(entries: readonly FileEntry[]): readonly FileEntry[] {
  const rank = ({ kind }: FileEntry) => (kind === 'folder' ? 0 : 1);
  return [...entries].sort((a, b) => rank(a) - rank(b) || baseName(a.path).localeCompare(baseName(b.path)));
}

/** Return bytes as text unless they are binary: no UTF-8, or with NUL. */
export function decodeText(bytes: Uint8Array, etag: string | null): FileText {
  if (bytes.includes(0)) return { reason: 'binary' };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), etag };
  } catch {
    return { reason: 'binary' };
  }
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const extensionOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1).toLowerCase();
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const joinPath = (folder: string, name: string): string => (folder ? `${folder}/${name}` : name);

export function contentAddress(agentId: string, path: string): string {
  return `/v0/agents/${encodeURIComponent(agentId)}/files/content?${new URLSearchParams({ path })}`;
}

/** Return whether a deleted file can be written again: a small one, which this page can keep until then. */
export const isRestorable = ({ kind, size }: FileEntry): boolean => kind === 'file' && size <= EDIT_LIMIT;

export async function fileContent(agentId: string, path: string): Promise<Blob> {
  return (await sendTo(contentAddress(agentId, path))).blob();
}

/** Write a file, with `etag` only in place of that version; `executable` keeps the permission of one that is replaced. */
export async function saveFile(
  agentId: string,
  path: string,
  content: Blob | string,
  executable = false,
  etag: string | null = null,
): Promise<void> {
  await sendTo(`${contentAddress(agentId, path)}&executable=${executable}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/octet-stream', ...ifMatch(etag) },
    body: content,
  });
}

export const makeFolder = (agentId: string, path: string) =>
  body(api.POST('/v0/agents/{agentId}/files/folder', { params: { path: { agentId } }, body: { path } }));

export const moveFile = (agentId: string, path: string, target: string) =>
  body(api.POST('/v0/agents/{agentId}/files/move', { params: { path: { agentId } }, body: { path, target } }));

export const deleteFile = (agentId: string, { path, kind }: FileEntry) =>
  body(api.DELETE('/v0/agents/{agentId}/files', { params: { path: { agentId }, query: { path, recursive: kind === 'folder' } } }));
