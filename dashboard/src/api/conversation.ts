import { queryOptions } from '@tanstack/react-query';

import { addToolUse, readAnswer, type AnswerEvent, type ToolUse } from './answers';
import { api, body } from './client';
import { waitToRetry } from './connections';
import { ApiError } from './errors';
import type { components } from './schema';
import { Store } from './store';

type History = components['schemas']['ChatHistoryRecord'];

export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly tools: readonly ToolUse[];
  readonly state: 'streaming' | 'complete' | 'stopped' | 'failed';
  readonly error?: unknown;
  /** Seconds for which the model has sent nothing. */
  readonly silentFor?: number;
}

export interface ConversationState {
  readonly messages: readonly Message[];
  readonly isAnswering: boolean;
  readonly isLoading: boolean;
  /** Why the history could not be loaded. */
  readonly error: unknown;
}

/** Raised for an answer without a text and without tools. */
export class EmptyAnswer extends Error {}

/** The conversation with one agent, which its engine keeps. Leaving the page or losing the server stops no answer. */
export class Conversation extends Store<ConversationState> {
  #id: string | null = null;
  #isLoaded = false;
  #isNew = false;
  #sending: Promise<unknown> = Promise.resolve();
  #loading: Promise<void> | null = null;
  #abort: AbortController | null = null;
  #lastId = 0;

  constructor(private readonly agentId: string) {
    super({ messages: [], isAnswering: false, isLoading: false, error: null });
  }

  /** Load the history, and follow the answer that is being written. Does nothing while an answer is followed. */
  load(): Promise<void> {
    const isFailed = this.state().messages.at(-1)?.state === 'failed'; // the history does not say why
    if (this.#abort || this.#isNew || isFailed) return Promise.resolve();
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  /** Load a message that another person sent, if its conversation is shown. */
  loadMessage(id: string): void {
    if (this.#id === null || this.#id === id) void this.load();
  }

  /** Begin a new conversation with the next message. An answer that is being written goes on in the old one. */
  begin(): void {
    this.leave();
    this.#id = null;
    this.#isLoaded = this.#isNew = true;
    this.#change({ messages: [], isAnswering: false, error: null });
  }

  /** Show another conversation that the engine keeps. */
  async open(id: string): Promise<void> {
    this.leave();
    this.#id = id;
    this.#isLoaded = this.#isNew = false;
    this.#change({ messages: [], isAnswering: false, error: null });
    await this.#loading; // of the one that was left
    await this.load();
  }

  /** Stop following the answer. */
  leave(): void {
    this.#abort?.abort();
    this.#abort = null;
  }

  /** Stop the answer in the engine. */
  async stop(): Promise<void> {
    await this.#sending.catch(() => undefined); // its error is an answer
    if (this.#id === null) return;
    await api.POST('/v0/agents/{agentId}/chat/stop', {
      params: { path: { agentId: this.agentId } },
      body: { conversationId: this.#id },
    });
  }

  /** Send the last question once more. */
  async retry(): Promise<void> {
    const question = this.state().messages.findLast(({ role }) => role === 'user');
    if (question) await this.send(question.text);
  }

  /** Send a message and follow its answer; errors become part of the conversation. */
  async send(text: string): Promise<void> {
    if (this.#abort) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.#append(this.#message('user', text), this.#message('assistant', '', 'streaming'));
    try {
      if (!this.#isLoaded) this.#prepend(await this.#fetchHistory(abort.signal));
      this.#sending = this.#post(text);
      await this.#sending;
      await this.#follow(abort);
    } catch (error) {
      this.#end(abort, { state: 'failed', error });
    }
  }

  async #post(text: string): Promise<void> {
    const sent = await body(
      api.POST('/v0/agents/{agentId}/chat/messages', {
        params: { path: { agentId: this.agentId } },
        body: { text, conversationId: this.#id },
      }),
    );
    this.#id = sent.conversationId;
    this.#isNew = false;
  }

  async #load(): Promise<void> {
    this.#change({ isLoading: !this.#isLoaded, error: null });
    const id = this.#id;
    try {
      const history = await this.#fetchHistory();
      if (!this.#abort && id === this.#id) this.#show(history); // else a message was sent, or another one begun
    } catch (error) {
      this.#change({ error });
    }
    this.#change({ isLoading: false });
  }

  /** Put the history before the message that is being sent. */
  #prepend(history: History): void {
    this.#adopt(history);
    this.#change({ messages: [...toMessages(history), ...this.state().messages] });
  }

  #adopt(history: History): void {
    this.#id = history.conversationId;
    this.#isLoaded = true;
  }

  #fetchHistory(signal?: AbortSignal): Promise<History> {
    const query = this.#id === null ? {} : { conversationId: this.#id };
    return body(
      api.GET('/v0/agents/{agentId}/chat/messages', {
        params: { path: { agentId: this.agentId }, query },
        ...(signal && { signal }),
      }),
    );
  }

  /** Show the history, and follow the answer to its last message in the background. */
  #show(history: History): void {
    this.#adopt(history);
    this.#change({ messages: toMessages(history), isAnswering: history.isAnswering });
    if (!history.isAnswering) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.#append(this.#message('assistant', '', 'streaming'));
    this.#follow(abort).catch((error: unknown) => this.#end(abort, { state: 'failed', error }));
  }

  /** Follow the answer until its end; after a lost connection from its beginning. Raises ApiError. */
  async #follow(abort: AbortController): Promise<void> {
    for (let attempt = 0; !abort.signal.aborted; attempt += 1) {
      try {
        if (await this.#read(abort)) return;
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof ApiError && error.status !== 0 && error.status < 500) throw error;
      }
      await waitToRetry(attempt, abort.signal);
    }
  }

  /** Read the answer once; return whether its end was read. */
  async #read(abort: AbortController): Promise<boolean> {
    let [text, tools]: [string, readonly ToolUse[]] = ['', []];
    for await (const event of readAnswer(this.agentId, this.#id ?? '', abort.signal)) {
      if (event.kind === 'end') {
        await this.#finish(abort, event);
        return true;
      }
      if (event.kind === 'silence') {
        this.#update(abort, { silentFor: event.seconds });
        continue;
      }
      if (event.kind === 'text') text = event.replaces ? event.text : text + event.text;
      else tools = addToolUse(tools, event.use);
      this.#update(abort, { text, tools, silentFor: 0 });
    }
    return false;
  }

  async #finish(abort: AbortController, end: AnswerEvent & { kind: 'end' }): Promise<void> {
    if (end.state === 'failed') return this.#end(abort, { state: 'failed', error: new ApiError(end.error, 502) });
    if (end.state === 'stopped') return this.#end(abort, { state: 'stopped' });
    const question = this.state().messages.at(-2)?.text;
    const history = await this.#fetchHistory(abort.signal).catch(() => null); // the answer is shown without it, too
    const messages = history === null ? [] : toMessages(history);
    const isStored = messages.at(-1)?.role === 'assistant' && messages.at(-2)?.text === question?.trim();
    if (abort.signal.aborted) return;
    if (isStored) this.#change({ messages });
    const { text = '', tools = [] } = this.state().messages.at(-1) ?? {};
    this.#end(abort, !text.trim() && tools.length === 0 ? { state: 'failed', error: new EmptyAnswer() } : { state: 'complete' });
  }

  #message(role: Message['role'], text: string, state: Message['state'] = 'complete'): Message {
    this.#lastId += 1;
    return { id: `new-${this.#lastId}`, role, text, tools: [], state };
  }

  #append(...messages: readonly Message[]): void {
    this.#change({ messages: [...this.state().messages, ...messages], isAnswering: true });
  }

  /** Change the last message, unless the answer is no longer followed. */
  #update(abort: AbortController, change: Partial<Message>): void {
    if (abort !== this.#abort) return;
    const { messages } = this.state();
    this.setBeforeNextFrame({ ...this.state(), messages: messages.with(-1, { ...messages.at(-1)!, ...change }) });
  }

  #end(abort: AbortController, change: Partial<Message>): void {
    if (abort !== this.#abort) return;
    this.#update(abort, change);
    this.#abort = null;
    this.#change({ isAnswering: false });
  }

  #change(change: Partial<ConversationState>): void {
    this.set({ ...this.state(), ...change });
  }
}

const toMessages = (history: History): readonly Message[] =>
  history.messages.map(({ id, role, text, tools, isStopped }) => ({
    id,
    role,
    text,
    tools,
    state: isStopped ? 'stopped' : 'complete',
  }));

/** The conversations that the engine keeps, newest first. They are read again for another conversation on the page. */
export const conversationsQuery = (agentId: string, shown: string | undefined) =>
  queryOptions({
    queryKey: ['agents', agentId, 'conversations', shown],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/chat/conversations', { params: { path: { agentId } }, signal })),
    select: ({ conversations: found }) => found,
  });

const conversations = new Map<string, Conversation>();

export function conversationWith(agentId: string): Conversation {
  const found = conversations.get(agentId) ?? new Conversation(agentId);
  conversations.set(agentId, found);
  return found;
}
