import { api, body } from './client';
import { ApiError } from './errors';
import { retryDelay } from './live';
import { REPLAYED_LINES, withoutReplay, type LogLine } from './logLines';

export type LogState = 'connecting' | 'live' | 'retrying' | 'failed';
/** Lines that the page keeps; older ones are dropped. */
export const LINE_LIMIT = 10_000;

/** The live log of one agent. It reconnects by itself; lines are collected outside React and shown once per frame. */
export class LogStream {
  #lines: readonly LogLine[] = [];
  #arrived: LogLine[] = [];
  #state: LogState = 'connecting';
  #error: unknown = null;
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #lastId = 0;
  #attempt = 0;
  #replayed = Infinity;
  #isClosed = false;
  readonly #watchers = new Set<() => void>();

  constructor(private readonly agentId: string) {
    this.#connect();
  }

  readonly lines = (): readonly LogLine[] => this.#lines;
  readonly state = (): LogState => this.#state;
  readonly error = (): unknown => this.#error;

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  clear(): void {
    this.#lines = [];
    this.#notify();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#socket?.close();
  }

  /** Connect now, after an error that another attempt may not have. */
  readonly retry = (): void => {
    this.#attempt = 0;
    this.#error = null;
    clearTimeout(this.#timer);
    this.#connect();
  };

  #connect(): void {
    const address = new URL(`/v0/agents/${encodeURIComponent(this.agentId)}/logs`, location.origin);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(address);
    this.#socket = socket;
    this.#replayed = this.#lines.length > 0 ? 0 : Infinity;
    socket.onopen = () => {
      this.#attempt = 0;
      this.#enter('live');
    };
    socket.onmessage = ({ data }) => this.#receive(String(data));
    socket.onclose = () => void this.#recover(socket);
  }

  #receive(data: string): void {
    this.#lastId += 1;
    const line = { ...(JSON.parse(data) as Omit<LogLine, 'id'>), id: this.#lastId };
    this.#replayed += 1;
    const isKnown = this.#replayed <= REPLAYED_LINES && withoutReplay(this.#lines, [line]).length === 0;
    if (isKnown) return;
    this.#arrived.push(line);
    this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    this.#lines = [...this.#lines, ...this.#arrived].slice(-LINE_LIMIT);
    this.#arrived = [];
    this.#notify();
  }

  /** A browser does not say why a socket was refused, so the reason is asked for. */
  async #recover(socket: WebSocket): Promise<void> {
    if (this.#isClosed || socket !== this.#socket) return;
    this.#enter('retrying');
    const delay = retryDelay(this.#attempt);
    this.#attempt += 1;
    if (this.#attempt > 1) {
      try {
        await body(api.GET('/v0/agents/{agentId}/logs', { params: { path: { agentId: this.agentId } } }));
      } catch (error) {
        if (this.#isClosed) return;
        this.#error = error;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500) return this.#enter('failed');
      }
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#connect(), delay);
  }

  #enter(state: LogState): void {
    if (state === 'live') this.#error = null;
    this.#state = state;
    this.#notify();
  }

  #notify(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    for (const watcher of this.#watchers) watcher();
  }
}
