import { retryDelay, socketUrl } from './connections';
import { Store } from './store';

/** What a terminal does: `refused` is the first connection, which a browser gets no reason for. */
export type TerminalState =
  | { readonly kind: 'connecting' | 'open' | 'retrying' | 'taken' | 'gone' | 'lost' | 'refused' | 'signedOut' }
  | { readonly kind: 'exited'; readonly code: number };

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** Where output goes. `write` calls `done` once it is processed, which lets more output come. */
export interface TerminalScreen {
  write(data: Uint8Array, done: () => void): void;
  /** Tell the reader that so many bytes of output are lost. */
  skip(bytes: number): void;
}

const MESSAGE_BYTES = 15 * 1024; // the server takes messages of up to 16 KiB
const ACKNOWLEDGE_BYTES = 16 * 1024;
const UNSENT_BYTES = 4 * 1024 * 1024;
const OFFSET_BYTES = 8;
const GRACE_MS = 60_000;
const REPLAY_MS = 300;
const LONGEST_ATTEMPT = 3; // of `retryDelay`: 4 s
const SIZE_LIMIT = 1_000;

/** Return what a closed connection means: the next state. `knows`: the server named the session in this connection. */
export function stateAfterClose(code: number, knows: boolean, hasSession: boolean): TerminalState['kind'] {
  if (code === 1008) return 'signedOut';
  if (code === 1000) return 'gone';
  if (code === 1001) return knows ? 'taken' : 'gone';
  return hasSession ? 'retrying' : 'refused';
}

/**
 * A terminal of an agent over as many connections as it takes. The session is kept for this tab, so that a page that is
 * opened again within a minute continues it.
 */
export class TerminalConnection extends Store<TerminalState> {
  #socket: WebSocket | null = null;
  #session: string | null;
  #knowsSession = false;
  #isReplay = false;
  #received = 0;
  #written = 0;
  #acknowledged = 0;
  #unsent: Uint8Array<ArrayBuffer>[] = [];
  #attempt = 0;
  #deadline = Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  readonly #storage: string;

  constructor(
    private readonly agentId: string,
    private size: TerminalSize,
    private readonly screen: TerminalScreen,
  ) {
    super({ kind: 'connecting' });
    this.#storage = `roost.terminal.${agentId}`;
    this.#session = sessionStorage.getItem(this.#storage);
    this.#isReplay = this.#session !== null;
    this.#connect();
  }

  /** Send what was typed; returns false if too much waits already. While output is repeated, replies to it are dropped. */
  send(data: Uint8Array<ArrayBuffer>): boolean {
    if (this.#isReplay) return true;
    const waiting = this.#unsent.reduce((sum, part) => sum + part.length, this.#socket?.bufferedAmount ?? 0);
    if (waiting + data.length > UNSENT_BYTES) return false;
    for (let start = 0; start < data.length; start += MESSAGE_BYTES) {
      this.#unsent.push(data.subarray(start, start + MESSAGE_BYTES));
    }
    this.#flush();
    return true;
  }

  resize(size: TerminalSize): void {
    this.size = size;
    this.#tell({ type: 'resize', ...limited(size) });
  }

  /** Leave the session, which the server keeps for a minute. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #connect(): void {
    const address = socketUrl(`/v0/agents/${encodeURIComponent(this.agentId)}/console/stream`);
    const { cols, rows } = limited(this.size);
    address.search = String(new URLSearchParams({ cols: `${cols}`, rows: `${rows}` }));
    if (this.#session !== null) {
      address.searchParams.set('session', this.#session);
      address.searchParams.set('after', `${this.#received}`);
    }
    const socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#knowsSession = false;
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === 'string') this.#receiveEvent(JSON.parse(data) as ServerMessage);
      else this.#receiveOutput(data);
    };
    socket.onclose = ({ code }) => this.#recover(socket, code);
  }

  #receiveEvent(message: ServerMessage): void {
    if (message.type === 'exit') {
      this.#forget();
      this.set({ kind: 'exited', code: message.exitCode });
      return;
    }
    this.#session = message.session;
    this.#knowsSession = true;
    this.#attempt = 0;
    this.#deadline = Infinity;
    sessionStorage.setItem(this.#storage, message.session);
    if (this.#isReplay) setTimeout(() => (this.#isReplay = false), REPLAY_MS);
    this.set({ kind: 'open' });
    // From the first acknowledgement on the server waits for them.
    this.#tell({ type: 'acknowledge', offset: this.#written });
    this.#tell({ type: 'resize', ...limited(this.size) });
    this.#flush();
  }

  #receiveOutput(message: ArrayBuffer): void {
    const offset = Number(new DataView(message).getBigUint64(0));
    const data = new Uint8Array(message, OFFSET_BYTES);
    if (offset > this.#received) this.screen.skip(offset - this.#received);
    this.#received = offset + data.length;
    const end = this.#received;
    this.screen.write(data, () => this.#acknowledge(end));
  }

  #acknowledge(offset: number): void {
    this.#written = offset;
    if (offset === this.#received) this.#isReplay = false;
    if (offset - this.#acknowledged < ACKNOWLEDGE_BYTES || !this.#knowsSession) return;
    this.#acknowledged = offset;
    this.#tell({ type: 'acknowledge', offset });
  }

  #recover(socket: WebSocket, code: number): void {
    if (this.#isClosed || socket !== this.#socket || this.state().kind === 'exited') return;
    const wasStored = this.state().kind === 'connecting' && this.#session !== null;
    const next = stateAfterClose(code, this.#knowsSession, this.#session !== null && !wasStored);
    if (wasStored && next === 'gone') {
      // The session of an earlier visit is over.
      this.#forget();
      this.#isReplay = false;
      this.#connect();
      return;
    }
    if (next === 'gone' || next === 'taken') this.#forget();
    if (next === 'retrying' && this.#deadline === Infinity) this.#deadline = Date.now() + GRACE_MS;
    const end = next !== 'retrying' ? next : Date.now() > this.#deadline ? 'lost' : null;
    if (end !== null) {
      this.set({ kind: end } as TerminalState);
      return;
    }
    this.set({ kind: 'retrying' });
    this.#timer = setTimeout(() => this.#connect(), retryDelay(Math.min(this.#attempt, LONGEST_ATTEMPT)));
    this.#attempt += 1;
  }

  #flush(): void {
    if (!this.#knowsSession || this.#socket?.readyState !== WebSocket.OPEN) return;
    for (const part of this.#unsent.splice(0)) this.#socket.send(part);
  }

  #tell(message: ClientMessage): void {
    if (this.#knowsSession && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #forget(): void {
    this.#session = null;
    sessionStorage.removeItem(this.#storage);
  }
}

type ServerMessage = { readonly type: 'session'; readonly session: string } | { readonly type: 'exit'; readonly exitCode: number };
type ClientMessage = ({ readonly type: 'resize' } & TerminalSize) | { readonly type: 'acknowledge'; readonly offset: number };

function limited({ cols, rows }: TerminalSize): TerminalSize {
  const limit = (cells: number) => Math.min(Math.max(1, cells), SIZE_LIMIT);
  return { cols: limit(cols), rows: limit(rows) };
}
