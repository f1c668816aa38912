import { useQuery } from '@tanstack/react-query';

import { mayAs, sessionQuery, type Role } from '../api/session';

const OPERATOR = 'default';

/** Return the session; null on pages without one. */
export function useSession() {
  return useQuery(sessionQuery).data ?? null;
}

/** Return whether the session is the operator's: an owner of the server's own tenant. */
export function useIsOperator(): boolean {
  const session = useSession();
  return session !== null && session.tenant.name === OPERATOR && session.role === 'owner';
}

/** Return whether the session may do what needs a role, so that pages leave out the other actions. */
export function useMay(): (needed: Role) => boolean {
  const session = useSession();
  return (needed) => session !== null && mayAs(session.role, needed);
}
