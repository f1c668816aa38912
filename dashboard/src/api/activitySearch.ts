/** Kinds of events, as the server names them. */
export const KINDS = ['agent', 'operation', 'task', 'device', 'channel', 'file', 'snapshot', 'skill', 'secret', 'domain'] as const;
export type Kind = (typeof KINDS)[number];
export interface ActivityFilter {
  readonly kind?: Kind;
  readonly agent?: string;
}

export const isKind = (value: unknown): value is Kind => KINDS.some((kind) => kind === value);

/** Return the filter of an address. */
export function readActivitySearch(search: Record<string, unknown>): ActivityFilter {
  return {
    ...(isKind(search.kind) && { kind: search.kind }),
    ...(typeof search.agent === 'string' && { agent: search.agent }),
  };
}
