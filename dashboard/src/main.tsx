import './app/csp';
import './app/base.css';

import { MutationCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { setCsrfToken, whenSignedOut } from './api/client';
import { ApiError } from './api/errors';
import { live, POLL_MS } from './api/live';
import { sessionQuery } from './api/session';
import { createAppRouter } from './app/router';
import { applyTheme, readTheme } from './app/theme';
import { LanguageProvider } from './i18n/language';

const RETRIES = 2;

applyTheme(readTheme());
const queries: QueryClient = new QueryClient({
  // What a change made stale is loaded again, also without live events. The session is none of it.
  mutationCache: new MutationCache({
    onSuccess: () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] }),
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // A request that was refused is refused again; one without an answer may succeed.
      retry: (failures, error) => failures < RETRIES && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      refetchInterval: () => (live.state() === 'polling' ? POLL_MS : false),
    },
  },
});
const router = createAppRouter(queries);

whenSignedOut(() => {
  setCsrfToken(null);
  queries.clear();
  queries.setQueryData(sessionQuery.queryKey, null);
  void router.invalidate();
});

// A page that the browser kept whole may show what was there before a sign-out in another window.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <LanguageProvider>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </LanguageProvider>
  </StrictMode>,
);
