import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';

import { sendTo } from './client';
import { ApiError } from './errors';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

/** Return the wait before the next attempt: doubled from 0.5 s to 15 s, with half of it at random. */
export function retryDelay(attempt: number, random = Math.random()): number {
  const whole = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
  return whole / 2 + (whole / 2) * random;
}

/** Wait before the next attempt; less if the browser is online again, the page is shown, or the signal aborts. */
export async function waitToRetry(attempt: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const over = new AbortController();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, retryDelay(attempt));
    const wake = () => {
      clearTimeout(timer);
      resolve();
    };
    for (const name of ['online', 'visibilitychange']) addEventListener(name, wake, { signal: over.signal });
    signal.addEventListener('abort', wake, { signal: over.signal });
  });
  over.abort();
}

/** Return the address of a WebSocket of the server. */
export function socketUrl(path: string): URL {
  const address = new URL(path, location.origin);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  return address;
}

/**
 * Open a stream of events (WHATWG HTML, server-sent events), after the event with the id `lastId`. Raises ApiError, of
 * status 404 for a response that is no such stream.
 */
export async function openEvents(
  path: string,
  signal: AbortSignal,
  lastId: string | null = null,
): Promise<AsyncGenerator<EventSourceMessage>> {
  const headers = { Accept: 'text/event-stream', ...(lastId !== null && { 'Last-Event-ID': lastId }) };
  const response = await sendTo(path, { headers, signal });
  if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) throw new ApiError('', 404);
  return readEvents(response.body);
}

async function* readEvents(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<EventSourceMessage> {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}
