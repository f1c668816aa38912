/** Kinds of events, as the server names them. */
export const KINDS = [
  'agent',
  'operation',
  'conversation',
  'task',
  'device',
  'channel',
  'file',
  'snapshot',
  'push',
  'skill',
  'secret',
  'domain',
] as const;
export type Kind = (typeof KINDS)[number];
export interface ActivityFilter {
  readonly kind?: Kind;
  readonly agent?: string;
}

export const isKind = (value: unknown): value is Kind => KINDS.some((kind) => kind === value);

/** Return the filter of an address. The router keeps parameters of the address that are left out here. */
export function readActivitySearch(search: Record<string, unknown>): ActivityFilter {
  return { kind: isKind(search.kind) ? search.kind : undefined, agent: typeof search.agent === 'string' ? search.agent : undefined };
}
