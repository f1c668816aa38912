import createClient from 'openapi-fetch';

import { ApiError, readError } from './errors';
import type { paths } from './schema';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
let csrfToken: string | null = null;
let onSignedOut: () => void = () => undefined;

/** Remember the session's token, which every unsafe request carries. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Return the header of unsafe requests, for those that another library sends. */
export function csrfHeader(): Record<string, string> {
  return csrfToken === null ? {} : { 'X-CSRF-Token': csrfToken };
}

/** Call `listener` when the server no longer accepts the session. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

/** Send a request with the session. Raises ApiError for an error status and when no server answers. */
export async function send(request: Request): Promise<Response> {
  if (csrfToken !== null && !SAFE_METHODS.has(request.method)) request.headers.set('X-CSRF-Token', csrfToken);
  let response: Response;
  try {
    response = await fetch(request);
  } catch (cause) {
    if (request.signal.aborted) throw cause;
    throw new ApiError('', 0);
  }
  if (response.ok) return response;
  if (response.status === 401 && csrfToken !== null && (await isSignedOut())) onSignedOut();
  throw await readError(response);
}

/** Return whether the session has ended: 401 also answers a request for what is another tenant's. */
async function isSignedOut(): Promise<boolean> {
  try {
    const answer = await fetch('/v0/session', { credentials: 'same-origin' });
    return !answer.ok || ((await answer.json()) as { session: unknown }).session === null;
  } catch {
    return false; // the server is away, which says nothing about the session
  }
}

/** A text and the entity tag of its version; null if the server gave none. */
export interface StoredText {
  readonly text: string;
  readonly etag: string | null;
}

/** Return the header of a write that replaces only the version with that entity tag. */
export function ifMatch(etag: string | null): Record<string, string> {
  return etag === null ? {} : { 'If-Match': etag };
}

/** A request for what the generated client has no method for: streams and uploads. */
export function sendTo(path: string, options: RequestInit = {}): Promise<Response> {
  return send(new Request(path, { credentials: 'same-origin', ...options }));
}

/** Client of all operations, typed by the server's own description. `data` is there unless it raised ApiError. */
export const api = createClient<paths>({ baseUrl: '', credentials: 'same-origin', fetch: send });

/** Return the body of a response: `await body(api.GET('/v0/agents'))`. */
export async function body<T>(answer: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  const { data } = await answer;
  if (data === undefined || data === null) throw new ApiError('', 0);
  return data;
}
