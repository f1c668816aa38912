import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';

import { foldEvents, KEPT_EVENTS, matchesFilter, storedQuery } from '../../api/activity';
import type { ActivityFilter } from '../../api/activitySearch';
import { live, type ServerEvent } from '../../api/live';

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
