import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type Route = components['schemas']['RouteRecord'];
export type Domain = components['schemas']['DomainRecord'];

/** A route as it is typed. */
export interface RouteRow {
  readonly path: string;
  readonly port: string;
  readonly isProtected: boolean;
}

/** What a new domain is to be. */
export interface NewDomain {
  readonly subdomain?: string;
  readonly customDomain?: string;
  readonly targetPort: number | null;
  readonly protected: boolean;
}

const GATEWAY_PORT = 18_789; // of the API, whichever port an engine uses
const at = (agentId: string) => ({ params: { path: { agentId } } });
const domainAt = (agentId: string, domainId: string) => ({ params: { path: { agentId, domainId } } });

export const routesQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'routes'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/port-forwarding', { ...at(agentId), signal })),
  });

export const toRows = (routes: readonly Route[]): readonly RouteRow[] =>
  routes.map(({ pathPrefix, port, protected: isProtected }) => ({ path: pathPrefix, port: String(port), isProtected }));

/** Replace all routes: either all of them count, or none. */
export const replaceRoutes = (agentId: string, rows: readonly RouteRow[]) =>
  body(
    api.PUT('/v0/agents/{agentId}/port-forwarding', {
      ...at(agentId),
      body: {
        mappings: rows.map(({ path, port, isProtected }) => ({
          pathPrefix: path.trim(),
          port: parsePort(port) ?? 0,
          protected: isProtected,
        })),
      },
    }),
  );

const normalPath = (path: string): string => path.trim().replace(/(?<=.)\/$/, ''); // as the server stores it

/** Return the paths that a change of routes opens to everyone, closes to those without a token, and ends. */
export function compareRoutes(
  before: readonly Route[],
  rows: readonly RouteRow[],
): Record<'opens' | 'closes' | 'ends', readonly string[]> {
  const after = rows.map(({ path, port, isProtected }) => ({ path: normalPath(path), port: parsePort(port), isProtected }));
  const open = new Map(before.filter((route) => !route.protected).map(({ pathPrefix, port }) => [pathPrefix, port]));
  return {
    opens: after.filter(({ path, port, isProtected }) => !isProtected && open.get(path) !== port).map(({ path }) => path),
    closes: after.filter(({ path, isProtected }) => isProtected && open.has(path)).map(({ path }) => path),
    ends: before.map(({ pathPrefix }) => pathPrefix).filter((prefix) => !after.some(({ path }) => path === prefix)),
  };
}

/** Put back the routes from `before` a change. Returns false if others have changed them since. */
export async function restoreRoutes(agentId: string, changed: readonly Route[], before: readonly Route[]): Promise<boolean> {
  const { mappings } = await body(api.GET('/v0/agents/{agentId}/port-forwarding', at(agentId)));
  if (JSON.stringify(mappings) !== JSON.stringify(changed)) return false;
  await replaceRoutes(agentId, toRows(before));
  return true;
}

/** Return the port of a text, null for what is no number. */
export function parsePort(text: string): number | null {
  return /^\s*[0-9]{1,5}\s*$/.test(text) ? Number(text) : null;
}

/** Return which input of which row the path of a field at fault is, so that the error is shown there. */
export function findRefusedField(field: string | null): { row: number; field: 'path' | 'port' } | null {
  const [, row, name] = /^mappings\.(\d+)\.(pathPrefix|port)$/.exec(field ?? '') ?? [];
  return row === undefined ? null : { row: Number(row), field: name === 'port' ? 'port' : 'path' };
}

export const domainsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'domains'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/domains', { ...at(agentId), signal })),
  });

/** The TXT record that proves a domain. It never changes. */
export const challengeQuery = (agentId: string, customDomain: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'domains', 'challenge', customDomain],
    staleTime: Infinity,
    refetchInterval: false,
    queryFn: ({ signal }) =>
      body(api.POST('/v0/agents/{agentId}/domains/challenge', { ...at(agentId), body: { customDomain }, signal })),
  });

export const addDomain = (agentId: string, domain: NewDomain) =>
  body(api.POST('/v0/agents/{agentId}/domains', { ...at(agentId), body: domain }));

export const changeDomain = (agentId: string, domainId: string, targetPort: number | null, isProtected: boolean) =>
  body(
    api.PUT('/v0/agents/{agentId}/domains/{domainId}', {
      ...domainAt(agentId, domainId),
      body: { targetPort: targetPort ?? GATEWAY_PORT, protected: isProtected },
    }),
  );

export const verifyDomain = (agentId: string, domainId: string) =>
  body(api.POST('/v0/agents/{agentId}/domains/{domainId}/verify', domainAt(agentId, domainId)));

export const removeDomain = (agentId: string, domainId: string) =>
  body(api.DELETE('/v0/agents/{agentId}/domains/{domainId}', domainAt(agentId, domainId)));

/** Return the port of an agent's own program, null for its gateway. */
export const programPort = ({ targetPort }: Pick<Domain, 'targetPort'>): number | null =>
  targetPort === GATEWAY_PORT ? null : targetPort;

/** Return what follows a subdomain; null where agents have ports instead of names. */
export function subdomainSuffix(agentUrl: string, agentId: string): string | null {
  const { hostname } = new URL(agentUrl);
  return hostname.startsWith(`${agentId}.`) ? hostname.slice(agentId.length) : null;
}
