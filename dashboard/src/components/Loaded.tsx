import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { ErrorPanel } from './ErrorPanel';
import { Skeleton } from './Skeleton';

interface Props<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}

/** The data of a query; before that a skeleton, and its error in words. Data stays in view when a reload fails. */
export function Loaded<T>({ query, children }: Props<T>) {
  return (
    <>
      {query.error && <ErrorPanel error={query.error} onRetry={query.refetch} />}
      {query.data === undefined ? !query.error && <Skeleton /> : children(query.data)}
    </>
  );
}
