import { queryOptions } from '@tanstack/react-query';

import { sendTo, setCsrfToken } from './client';
import { ApiError } from './errors';

export type Role = 'owner' | 'editor' | 'viewer';
export interface Session {
  readonly tenant: { readonly id: string; readonly name: string };
  readonly role: Role;
  readonly plan: string;
  readonly scopes: readonly string[];
  readonly csrfToken: string;
  readonly expiresAt: string;
}
const STORED_UPLOAD = 'tus::';
export type Credential = { readonly code: string } | { readonly key: string };

async function accept(response: Response): Promise<Session> {
  const { session } = (await response.json()) as { session: Session };
  setCsrfToken(session.csrfToken);
  return session;
}

/** The browser's session, or null if it has none. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Infinity,
  retry: false,
  queryFn: async (): Promise<Session | null> => {
    try {
      return await accept(await sendTo('/v0/session'));
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
});

export async function signIn(credential: Credential): Promise<Session> {
  return accept(
    await sendTo('/v0/session', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(credential),
    }),
  );
}

/** End the session, and remove what this browser stores of it: names of unfinished uploads, terminals. */
export async function signOut(): Promise<void> {
  await sendTo('/v0/session', { method: 'DELETE' });
  setCsrfToken(null);
  sessionStorage.clear();
  for (const key of Object.keys(localStorage)) if (key.startsWith(STORED_UPLOAD)) localStorage.removeItem(key);
}

const RANKS: Record<Role, number> = { viewer: 0, editor: 1, owner: 2 };

/** Return whether a role may do what needs at least `needed`. */
export function mayAs(role: Role, needed: Role): boolean {
  return RANKS[role] >= RANKS[needed];
}
