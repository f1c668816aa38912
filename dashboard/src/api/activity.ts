import { queryOptions, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';

import { isKind, type ActivityFilter } from './activitySearch';
import { sendTo } from './client';
import { live, parseEvent, type ServerEvent } from './live';

const KEPT_EVENTS = 1_000;

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
  const reader = response.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).getReader();
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

const storedQuery = (filter: ActivityFilter) =>
  queryOptions({
    queryKey: ['activity', filter.kind ?? '', filter.agent ?? ''],
    staleTime: 0,
    refetchInterval: false,
    queryFn: ({ signal }) => readStored(filter, signal),
  });

/**
 * The events of the last hour that fit a filter, and those that come. The page's one connection brings the new ones and
 * resumes by itself; after a break that was too long for that it says `reset`, and all is read again.
 */
export function useActivity(filter: ActivityFilter): {
  readonly query: UseQueryResult<readonly ServerEvent[]>;
  readonly events: readonly ServerEvent[];
} {
  const { kind, agent } = filter;
  const query = useQuery(storedQuery(filter));
  const [recent, setRecent] = useState<readonly ServerEvent[]>([]);
  useEffect(
    () =>
      live.listen((event) => {
        setRecent((before) => (event.type === 'reset' ? [] : [event, ...before].slice(0, KEPT_EVENTS)));
      }),
    [],
  );
  const events = useMemo(() => {
    const fitting = recent.filter((event) => matchesFilter(event, { kind, agent }));
    return foldEvents([...fitting, ...(query.data ?? [])]);
  }, [query.data, recent, kind, agent]);
  return { query, events };
}
