import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { stateAfterClose, TerminalConnection } from './terminal';

class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];
  readyState = FakeSocket.OPEN;
  bufferedAmount = 0;
  sent: (string | Uint8Array)[] = [];
  onmessage: (event: { data: string | ArrayBuffer }) => void = () => undefined;
  onclose: (event: { code: number }) => void = () => undefined;

  constructor(readonly address: URL) {
    FakeSocket.all.push(this);
  }

  send(data: string | Uint8Array): void {
    this.sent.push(data);
  }

  close(): void {
    this.readyState = 3;
  }

  tell(message: object): void {
    this.onmessage({ data: JSON.stringify(message) });
  }

  output(offset: number, length: number): void {
    const message = new ArrayBuffer(8 + length);
    new DataView(message).setBigUint64(0, BigInt(offset));
    this.onmessage({ data: message });
  }

  lose(code: number): void {
    this.readyState = 3;
    this.onclose({ code });
  }
}

const stored = new Map<string, string>();
const screen = { written: [] as (() => void)[], skipped: [] as number[] };

function open(): TerminalConnection {
  return new TerminalConnection(
    'a',
    { cols: 80, rows: 24 },
    { write: (_, done) => screen.written.push(done), skip: (bytes) => screen.skipped.push(bytes) },
  );
}

const socket = (index: number) => FakeSocket.all.at(index)!;
const acknowledged = (one: FakeSocket) =>
  one.sent
    .filter((sent) => typeof sent === 'string' && sent.includes('acknowledge'))
    .map((sent) => JSON.parse(sent as string).offset);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('WebSocket', FakeSocket);
  vi.stubGlobal('location', { origin: 'http://localhost:1', protocol: 'http:' });
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  FakeSocket.all = [];
  stored.clear();
  screen.written = [];
  screen.skipped = [];
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a closed connection means', () => {
  expect(stateAfterClose(1006, true, true)).toBe('retrying');
  expect(stateAfterClose(1012, true, true)).toBe('retrying');
  expect(stateAfterClose(1006, false, false)).toBe('refused');
  expect(stateAfterClose(1001, true, true)).toBe('taken');
  expect(stateAfterClose(1001, false, true)).toBe('gone');
  expect(stateAfterClose(1008, true, true)).toBe('signedOut');
});

describe('a terminal', () => {
  test('acknowledges what the screen has taken', () => {
    open();
    socket(0).tell({ type: 'session', session: 's' });
    socket(0).output(0, 20_000);
    expect(acknowledged(socket(0))).toEqual([0]);
    screen.written[0]!();
    expect(acknowledged(socket(0))).toEqual([0, 20_000]);
  });

  test('continues from the output that it has, and sends what was typed meanwhile', () => {
    const connection = open();
    connection.send(new Uint8Array(20_000));
    expect(socket(0).sent).toEqual([]);
    socket(0).tell({ type: 'session', session: 's' });
    expect(
      socket(0)
        .sent.filter((sent) => typeof sent !== 'string')
        .map((sent) => sent.length),
    ).toEqual([15_360, 4_640]);
    socket(0).output(0, 100);
    socket(0).lose(1006);
    expect(connection.state().kind).toBe('retrying');
    connection.send(new Uint8Array([7]));
    vi.runOnlyPendingTimers();
    expect(socket(1).address.searchParams.get('session')).toBe('s');
    expect(socket(1).address.searchParams.get('after')).toBe('100');
    socket(1).tell({ type: 'session', session: 's' });
    expect(socket(1).sent.at(-1)).toEqual(new Uint8Array([7]));
    socket(1).output(150, 10);
    expect(screen.skipped).toEqual([50]);
  });

  test('gives up after a minute', () => {
    const connection = open();
    socket(0).tell({ type: 'session', session: 's' });
    for (let attempt = 0; attempt < 60 && connection.state().kind !== 'lost'; attempt += 1) {
      socket(-1).lose(1006);
      vi.runOnlyPendingTimers();
    }
    expect(connection.state().kind).toBe('lost');
  });

  test('starts a new session when that of an earlier visit has ended', () => {
    stored.set('roost.terminal.a', 'old');
    const connection = open();
    socket(0).lose(1001);
    expect(socket(1).address.searchParams.has('session')).toBe(false);
    socket(1).tell({ type: 'session', session: 'new' });
    socket(1).tell({ type: 'exit', exitCode: 3 });
    socket(1).lose(1000);
    expect(connection.state()).toEqual({ kind: 'exited', code: 3 });
    expect(stored.size).toBe(0);
  });

  test('drops replies of the screen to output that is repeated', () => {
    stored.set('roost.terminal.a', 's');
    const connection = open();
    socket(0).tell({ type: 'session', session: 's' });
    socket(0).output(0, 10);
    connection.send(new Uint8Array([1]));
    screen.written[0]!();
    connection.send(new Uint8Array([2]));
    expect(socket(0).sent.filter((sent) => typeof sent !== 'string')).toEqual([new Uint8Array([2])]);
  });
});
