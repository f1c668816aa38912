import { api, body } from './client';
import { retryDelay, socketUrl } from './connections';
import { ApiError } from './errors';
import { REPLAYED_LINES, withoutReplay, type LogLine } from './logLines';
import { Store } from './store';

export type LogState = 'connecting' | 'live' | 'retrying' | 'failed';
interface Log {
  readonly state: LogState;
  readonly lines: readonly LogLine[];
  /** Why there is no connection. */
  readonly error: unknown;
}
/** Lines that the page keeps; older ones are dropped. */
export const LINE_LIMIT = 10_000;

/** The live log of one agent. It reconnects by itself; lines are collected outside React and shown once per frame. */
export class LogStream extends Store<Log> {
  #arrived: LogLine[] = [];
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #lastId = 0;
  #attempt = 0;
  #replayed = Infinity;
  #isClosed = false;

  constructor(private readonly agentId: string) {
    super({ state: 'connecting', lines: [], error: null });
    this.#connect();
  }

  clear(): void {
    this.#change({ lines: [] });
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
    this.#change({ error: null });
    clearTimeout(this.#timer);
    this.#connect();
  };

  #connect(): void {
    const socket = new WebSocket(socketUrl(`/v0/agents/${encodeURIComponent(this.agentId)}/logs`));
    this.#socket = socket;
    this.#replayed = this.state().lines.length > 0 ? 0 : Infinity;
    socket.onopen = () => {
      this.#attempt = 0;
      this.#change({ state: 'live', error: null });
    };
    socket.onmessage = ({ data }) => this.#receive(String(data));
    socket.onclose = () => void this.#recover(socket);
  }

  #receive(data: string): void {
    this.#lastId += 1;
    const line = { ...(JSON.parse(data) as Omit<LogLine, 'id'>), id: this.#lastId };
    this.#replayed += 1;
    const isKnown = this.#replayed <= REPLAYED_LINES && withoutReplay(this.state().lines, [line]).length === 0;
    if (isKnown) return;
    this.#arrived.push(line);
    this.#frame ||= requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    this.#frame = 0;
    this.#change({ lines: [...this.state().lines, ...this.#arrived].slice(-LINE_LIMIT) });
    this.#arrived = [];
  }

  /** A browser does not say why a socket was refused, so the reason is asked for. */
  async #recover(socket: WebSocket): Promise<void> {
    if (this.#isClosed || socket !== this.#socket) return;
    this.#change({ state: 'retrying' });
    const delay = retryDelay(this.#attempt);
    this.#attempt += 1;
    if (this.#attempt > 1) {
      try {
        await body(api.GET('/v0/agents/{agentId}/logs', { params: { path: { agentId: this.agentId } } }));
      } catch (error) {
        if (this.#isClosed) return;
        const isFinal = error instanceof ApiError && error.status >= 400 && error.status < 500;
        this.#change({ error, ...(isFinal && { state: 'failed' }) });
        if (isFinal) return;
      }
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#connect(), delay);
  }

  #change(change: Partial<Log>): void {
    this.set({ ...this.state(), ...change });
  }
}
