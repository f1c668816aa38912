import { useQuery } from '@tanstack/react-query';

import { mayAs, sessionQuery, type Role } from '../api/session';

/** Return the session; null on pages without one. */
export function useSession() {
  return useQuery(sessionQuery).data ?? null;
}

/** Return whether the session may manage the server itself. */
export function useIsOperator(): boolean {
  return useSession()?.operator ?? false;
}

/** Return whether the session may do what needs a role, so that pages leave out the other actions. */
export function useMay(): (needed: Role) => boolean {
  const session = useSession();
  return (needed) => session !== null && mayAs(session.role, needed);
}
