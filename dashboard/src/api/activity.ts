import { queryOptions } from '@tanstack/react-query';

import { isKind, type ActivityFilter } from './activitySearch';
import { sendTo } from './client';
import { parseEvent, type ServerEvent } from './live';

export const KEPT_EVENTS = 1_000;

/** Return whether an event fits the filter. */
export function matchesFilter(event: ServerEvent, { kind, agent }: ActivityFilter): boolean {
  const [of] = event.type.split('.');
  return isKind(of) && (kind === undefined || kind === of) && (agent === undefined || agent === event.agentId);
}

/**
 * Return events without repetition, newest first and at most 1,000. Of background work only the last state stays.
 */
export function foldEvents(events: readonly ServerEvent[]): readonly ServerEvent[] {
  const seen = new Set<string>();
  const newest = [...events].sort((a, b) => Number(b.id) - Number(a.id));
  return newest
    .filter(({ id, type, subject }) => {
      const key = type === 'operation.changed' ? subject.id : id;
      return !seen.has(key) && seen.add(key);
    })
    .slice(0, KEPT_EVENTS);
}

/** Return the events of a stream's text up to the first heartbeat, which follows the stored ones: an id without data. */
export function parseStored(text: string): { readonly events: readonly ServerEvent[]; readonly isComplete: boolean } {
  const blocks = text.split('\n\n').slice(0, -1);
  const end = blocks.findIndex((block) => !/^data:/m.test(block));
  const events = (end < 0 ? blocks : blocks.slice(0, end)).map((block) =>
    parseEvent(/^event: (.*)$/m.exec(block)?.[1], /^data: (.*)$/m.exec(block)?.[1] ?? ''),
  );
  return { events: events.filter((event) => event !== null), isComplete: end >= 0 };
}

async function readStored({ kind, agent }: ActivityFilter, outer: AbortSignal): Promise<readonly ServerEvent[]> {
  const query = new URLSearchParams({ after: 'oldest', ...(kind && { types: kind }), ...(agent && { agentId: agent }) });
  const abort = new AbortController();
  const signal = AbortSignal.any([outer, abort.signal]);
  const response = await sendTo(`/v0/events?${query}`, { headers: { Accept: 'text/event-stream' }, signal });
  const reader = response
    .body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .getReader();
  let text = '';
  let stored = parseStored(text);
  for (let next = await reader.read(); !next.done && !stored.isComplete; next = await reader.read()) {
    text += next.value;
    stored = parseStored(text);
    if (stored.isComplete) break;
  }
  abort.abort();
  return foldEvents(stored.events);
}

export const storedQuery = (filter: ActivityFilter) =>
  queryOptions({
    queryKey: ['activity', filter.kind ?? '', filter.agent ?? ''],
    staleTime: 0,
    refetchInterval: false,
    queryFn: ({ signal }) => readStored(filter, signal),
  });
