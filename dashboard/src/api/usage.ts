import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';
import { inner } from './storage';

export type UsageReport = components['schemas']['UsageReport'];
export type UsageCount = components['schemas']['UsageCountRecord'];
export const PERIODS = [7, 30, 90] as const;
export type Period = (typeof PERIODS)[number];
export const DEFAULT_PERIOD: Period = 30;

const DAY_MS = 86_400_000;

/** Return the first and the last of the newest days (UTC), today included. */
export function newestDays(period: Period, now = new Date()): { from: string; to: string } {
  const day = (moment: number) => new Date(moment).toISOString().slice(0, 10);
  return { from: day(now.getTime() - (period - 1) * DAY_MS), to: day(now.getTime()) };
}

export const usageQuery = (period: Period) =>
  queryOptions({
    queryKey: ['usage', period],
    queryFn: ({ signal }) => body(api.GET('/v0/usage', { params: { query: newestDays(period) }, signal })),
  });

export const agentUsageQuery = (agentId: string, period: Period) =>
  queryOptions({
    queryKey: ['agents', agentId, 'usage', period],
    queryFn: ({ signal }) =>
      body(api.GET('/v0/agents/{agentId}/usage', { params: { path: { agentId }, query: newestDays(period) }, signal })),
  });

export const usageTotalsQuery = queryOptions({
  queryKey: ['files', 'totals'],
  queryFn: ({ signal }) => inner(api.GET('/v3/files/totals', { signal })),
});

export const gatewaySeriesQuery = (period: Period) =>
  queryOptions({
    queryKey: ['usage', 'gateways', period],
    queryFn: ({ signal }) => {
      const { from, to } = newestDays(period);
      const query = { start_date: from, end_date: to, sort_order: 'asc', limit: period } as const;
      return inner(api.GET('/v3/analytics/gateways/time_series', { params: { query }, signal }));
    },
  });
