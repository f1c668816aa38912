import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { addToolUse, parseAnswerEvent, type ToolUse } from './answers';
import { Conversation } from './conversation';
import { ApiError } from './errors';

// Before the client is made, which keeps the class that it finds: paths are relative to the page.
vi.hoisted(() => {
  const NativeRequest = Request;
  globalThis.Request = class extends NativeRequest {
    constructor(input: string | Request, options?: RequestInit) {
      super(typeof input === 'string' ? new URL(input, 'http://localhost') : input, options);
    }
  } as typeof Request;
});

const ID = 'chat-20260102030405678-0a1b2c';
const USE: ToolUse = { id: 'c1', name: 'exec', arguments: '{}', state: 'running', result: '' };

const json = (value: unknown, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json' } });
const stream = (...events: readonly [string, unknown][]) =>
  new Response(events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''), {
    headers: { 'Content-Type': 'text/event-stream' },
  });
const stored = (role: string, text: string) => ({ id: text, role, text, tools: [], sentAt: null, isStopped: false });
const history = (...messages: readonly unknown[]) => ({ conversationId: messages.length ? ID : null, messages, isAnswering: false });
const END: [string, unknown] = ['end', { state: 'complete', error: null }];

let answers: ((request: Request) => Response)[] = [];
let requests: string[] = [];

/** Answer the next requests in this order. */
function serve(...next: ((request: Request) => Response)[]) {
  answers = next;
}

beforeEach(() => {
  requests = [];
  vi.stubGlobal('requestAnimationFrame', (callback: () => void) => callback());
  vi.stubGlobal('cancelAnimationFrame', () => undefined);
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('fetch', (request: Request) => {
    requests.push(`${request.method} ${new URL(request.url).pathname.split('/').slice(5).join('/')}`);
    const answer = answers.shift();
    return answer ? Promise.resolve(answer(request)) : Promise.reject(new Error('unexpected request'));
  });
});

afterEach(() => vi.unstubAllGlobals());

const texts = (conversation: Conversation) => conversation.state().messages.map(({ text, state }) => [text, state]);

it('loads the history once, and continues that conversation', async () => {
  const conversation = new Conversation('a');
  serve(
    () => json(history(stored('user', 'one'), stored('assistant', 'two'))),
    () => json({ conversationId: ID }, 202),
    () => stream(['text', { text: 'fo', replaces: false }], ['text', { text: 'ur', replaces: false }], END),
    () => json(history(stored('user', 'three'), stored('assistant', 'four!'))),
  );
  await conversation.load();
  await conversation.send('three');
  expect(requests).toEqual(['GET messages', 'POST messages', 'GET answer', 'GET messages']);
  expect(texts(conversation)).toEqual([
    ['three', 'complete'],
    ['four!', 'complete'],
  ]);
  expect(conversation.state().isAnswering).toBe(false);
});

it('opens another conversation, also while one is loaded', async () => {
  const conversation = new Conversation('a');
  serve(
    () => json(history(stored('user', 'one'))),
    (request) => json({ ...history(stored('user', new URL(request.url).searchParams.get('conversationId')!)) }),
  );
  const loading = conversation.load();
  await conversation.open('chat-2');
  await loading;
  expect(texts(conversation)).toEqual([['chat-2', 'complete']]);
});

it('keeps what it has when the connection is lost, and shows the whole answer later', async () => {
  vi.useFakeTimers();
  const conversation = new Conversation('a');
  serve(
    () => json(history()),
    () => json({ conversationId: ID }, 202),
    () => stream(['text', { text: 'half', replaces: false }]),
    () => json({ error: 'restarting' }, 503),
    () => stream(['text', { text: 'half and half', replaces: false }], END),
    () => json(history(stored('user', 'go'), stored('assistant', 'half and half'))),
  );
  const sent = conversation.send('go');
  await vi.waitFor(() => expect(texts(conversation).at(-1)).toEqual(['half', 'streaming']));
  await vi.advanceTimersByTimeAsync(5_000);
  await sent;
  expect(texts(conversation).at(-1)).toEqual(['half and half', 'complete']);
  vi.useRealTimers();
});

it('joins an answer that is being written', async () => {
  const conversation = new Conversation('a');
  serve(
    () => json({ ...history(stored('user', 'go')), isAnswering: true }),
    () =>
      stream(
        ['tool', USE],
        ['tool', { ...USE, state: 'done' }],
        ['text', { text: 'x', replaces: true }],
        ['end', { state: 'stopped', error: null }],
      ),
  );
  await conversation.load();
  await vi.waitFor(() => expect(conversation.state().isAnswering).toBe(false));
  const answer = conversation.state().messages.at(-1)!;
  expect([answer.text, answer.state, answer.tools]).toEqual(['x', 'stopped', [{ ...USE, state: 'done' }]]);
});

it('shows what failed, as an answer', async () => {
  const conversation = new Conversation('a');
  serve(
    () => json(history()),
    () => json({ error: 'The agent is not running' }, 409),
  );
  await conversation.send('go');
  const answer = conversation.state().messages.at(-1)!;
  expect([answer.state, (answer.error as Error).message]).toEqual(['failed', 'The agent is not running']);
});

it('begins another conversation', async () => {
  const conversation = new Conversation('a');
  let sent: unknown;
  serve(() => json(history(stored('user', 'one'), stored('assistant', 'two'))));
  await conversation.load();
  conversation.begin();
  expect(conversation.state().messages).toEqual([]);
  serve((request) => {
    sent = request.clone().json();
    return json({ error: 'no' }, 400);
  });
  await conversation.send('three');
  expect(await sent).toEqual({ text: 'three', conversationId: null });
});

it('reads events, and ignores what is none', () => {
  expect(parseAnswerEvent('text', '{"text": "a"}')).toEqual({ kind: 'text', text: 'a', replaces: false });
  expect(parseAnswerEvent('text', '{"text": {"x": 1}}')).toEqual({ kind: 'text', text: '', replaces: false });
  expect(parseAnswerEvent('silence', '{"seconds": 15}')).toEqual({ kind: 'silence', seconds: 15 });
  expect(parseAnswerEvent('other', '{}')).toBeNull();
  expect(parseAnswerEvent('text', 'nonsense')).toBeNull();
  expect(() => parseAnswerEvent('error', '{"error": "no"}')).toThrow(ApiError);
});

it('has each tool once, and a limited number', () => {
  const done: ToolUse = { ...USE, state: 'done', result: 'ok' };
  expect(addToolUse(addToolUse([], USE), done)).toEqual([done]);
  let uses: readonly ToolUse[] = [];
  for (let number = 0; number < 1000; number += 1) uses = addToolUse(uses, { ...USE, id: `${number}` });
  expect(uses.length).toBe(200);
});
