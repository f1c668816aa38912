import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { ErrorPanel } from './ErrorPanel';
import { Skeleton } from './Skeleton';

/** The result of a query: a skeleton while it loads, its error, or what `children` make of the data. */
export function QueryView<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = query;
  if (data !== undefined) return <>{children(data)}</>;
  return error ? <ErrorPanel error={error} onRetry={refetch} /> : <Skeleton />;
}
