import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { QueryClient } from '@tanstack/react-query';

import { sendTo } from './client';
import { ApiError } from './errors';

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

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
export const POLL_MS = 5_000;

/** Return the wait before the next attempt: doubled from 0.5 s to 15 s, with half of it at random. */
export function retryDelay(attempt: number, random = Math.random()): number {
  const whole = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
  return whole / 2 + (whole / 2) * random;
}

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
export class LiveConnection {
  #state: LiveState = 'stopped';
  #cursor: string | null = null;
  #abort: AbortController | null = null;
  #wake: () => void = () => undefined;
  readonly #watchers = new Set<() => void>();
  readonly #listeners = new Set<(event: ServerEvent) => void>();

  readonly state = (): LiveState => this.#state;

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  readonly listen = (listener: (event: ServerEvent) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): () => void {
    const abort = new AbortController();
    this.#abort = abort;
    const wake = () => this.#wake();
    addEventListener('online', wake, { signal: abort.signal });
    document.addEventListener('visibilitychange', wake, { signal: abort.signal });
    void this.#run(abort.signal);
    return () => {
      abort.abort();
      this.#wake();
      if (this.#abort === abort) this.#enter('stopped');
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      this.#enter(attempt ? 'retrying' : 'connecting');
      try {
        await this.#follow(signal, () => {
          attempt = 0;
        });
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 401)) {
          if (!signal.aborted) this.#enter(error.status === 404 ? 'polling' : 'stopped');
          return;
        }
      }
      if (!signal.aborted) await this.#pause(retryDelay(attempt));
    }
  }

  async #follow(signal: AbortSignal, whenOpen: () => void): Promise<void> {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (this.#cursor !== null) headers['Last-Event-ID'] = this.#cursor;
    const response = await sendTo('/v0/events', { headers, signal });
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      throw new ApiError('', 404);
    }
    whenOpen();
    this.#enter('live');
    const reader = response.body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
      .pipeThrough(new EventSourceParserStream())
      .getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (next.value.id) this.#cursor = next.value.id;
      const event = parseEvent(next.value.event, next.value.data);
      if (event) for (const listener of this.#listeners) listener(event);
    }
  }

  #pause(milliseconds: number): Promise<void> {
    this.#enter('retrying');
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #enter(state: LiveState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const watcher of this.#watchers) watcher();
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
