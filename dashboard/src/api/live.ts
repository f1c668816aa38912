import type { QueryClient } from '@tanstack/react-query';

import { openEvents, waitToRetry } from './connections';
import { ApiError } from './errors';
import { Store } from './store';

/** `polling`: the server has no event stream, so that pages ask again every few seconds. */
export type LiveState = 'connecting' | 'live' | 'retrying' | 'polling' | 'stopped';
export interface ServerEvent {
  readonly id: string;
  readonly type: string;
  readonly at: string;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly agentId: string | null;
  /** Who made the change; null if it was not recorded. */
  readonly actor: { readonly kind: string; readonly id: string | null; readonly name: string | null } | null;
  readonly data: Record<string, unknown>;
}

export const POLL_MS = 5_000;

/** Return the query keys that an event makes stale. Keys are `[area, ...]`; those of one agent `['agents', id, ...]`. */
export function staleKeys(event: Pick<ServerEvent, 'type' | 'subject' | 'agentId' | 'data'>): readonly (readonly string[])[] {
  if (event.type === 'reset') return [[]];
  if (event.subject.kind === 'conversation') {
    // An engine lists its conversations slowly while it answers.
    const isOver = event.data.state !== 'answering';
    return event.agentId && isOver ? [['agents', event.agentId, 'conversations']] : [];
  }
  const area = `${event.subject.kind}s`;
  const ofAgent = event.agentId ? [['agents', event.agentId]] : [];
  return event.subject.kind === 'agent' ? [['agents']] : [[area], ...ofAgent];
}

/** The connection to the server's events. One for the whole page; it reconnects and resumes by itself. */
export class LiveConnection extends Store<LiveState> {
  #cursor: string | null = null;
  #abort: AbortController | null = null;
  readonly #listeners = new Set<(event: ServerEvent) => void>();

  constructor() {
    super('stopped');
  }

  readonly listen = (listener: (event: ServerEvent) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): () => void {
    const abort = new AbortController();
    this.#abort = abort;
    void this.#run(abort.signal);
    return () => {
      abort.abort();
      if (this.#abort === abort) this.set('stopped');
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      this.set(attempt ? 'retrying' : 'connecting');
      try {
        await this.#follow(signal, () => {
          attempt = 0;
        });
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 401)) {
          if (!signal.aborted) this.set(error.status === 404 ? 'polling' : 'stopped');
          return;
        }
      }
      if (signal.aborted) return;
      this.set('retrying');
      await waitToRetry(attempt, signal);
    }
  }

  async #follow(signal: AbortSignal, whenOpen: () => void): Promise<void> {
    const messages = await openEvents('/v0/events', signal, this.#cursor);
    whenOpen();
    this.set('live');
    for await (const { id, event: type, data } of messages) {
      if (id) this.#cursor = id;
      const event = parseEvent(type, data);
      if (event) for (const listener of this.#listeners) listener(event);
    }
  }
}

/** Return the event of a message of the stream; null for what this page does not know. */
export function parseEvent(type: string | undefined, data: string): ServerEvent | null {
  if (type === 'reset') {
    return { id: '', type, at: '', subject: { kind: 'reset', id: '' }, agentId: null, actor: null, data: {} };
  }
  try {
    const event = JSON.parse(data) as ServerEvent;
    return typeof event.type === 'string' && typeof event.subject?.kind === 'string' ? event : null;
  } catch {
    return null;
  }
}

export const live = new LiveConnection();

const deletedHere = new Set<string>();

/** Ask for nothing of an agent that this page deletes: the event of its end comes before the page is left. */
export function ignoreEventsOf(agentId: string): () => void {
  deletedHere.add(agentId);
  return () => deletedHere.delete(agentId);
}

/** Load again what an event made stale, at most once per 200 ms. Returns the function that ends it. */
export function refreshOnEvents(client: QueryClient): () => void {
  const pending = new Map<string, readonly string[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    for (const queryKey of pending.values()) {
      void client.invalidateQueries({ queryKey, predicate: (query) => !deletedHere.has(String(query.queryKey[1])) });
    }
    pending.clear();
  };
  const end = live.listen((event) => {
    for (const key of staleKeys(event)) pending.set(key.join('/'), key);
    timer ??= setTimeout(flush, 200);
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}
