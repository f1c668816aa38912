import { EventSourceParserStream } from 'eventsource-parser/stream';

import { sendTo } from './client';
import { ApiError } from './errors';

const TOOL_EVENT = 'hermes.tool.progress';
const MAX_TOOLS = 200;

/** A tool that an agent used: by engines that tell of it (Hermes), with what it was used on in short. */
export interface ToolUse {
  readonly id: string;
  readonly name: string;
  readonly detail: string;
  readonly isDone: boolean;
}

export interface Message {
  readonly id: number;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly tools: readonly ToolUse[];
  readonly state: 'streaming' | 'complete' | 'stopped' | 'failed';
  readonly error?: unknown;
}

/** Raised for an answer that is no stream of chat completions, or an empty one. */
export class MalformedAnswer extends Error {
  constructor(readonly isEmpty: boolean) {
    super('malformed answer');
  }
}

/** A conversation with one agent. It belongs to the tab, so that leaving the page does not stop an answer. */
export class Conversation {
  #messages: readonly Message[] = [];
  #abort: AbortController | null = null;
  #lastId = 0;
  #frame = 0;
  readonly #watchers = new Set<() => void>();

  constructor(private readonly agentId: string) {}

  readonly messages = (): readonly Message[] => this.#messages;

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  get isAnswering(): boolean {
    return this.#abort !== null;
  }

  stop(): void {
    this.#abort?.abort();
  }

  clear(): void {
    this.stop();
    this.#replace([]);
  }

  /** Ask the last question again, in place of its answer. */
  async retry(): Promise<void> {
    const index = this.#messages.findLastIndex(({ role }) => role === 'user');
    const question = this.#messages[index];
    if (this.#abort || !question) return;
    this.#messages = this.#messages.slice(0, index);
    await this.send(question.text);
  }

  /** Send a message and collect its answer; errors become part of the conversation. */
  async send(text: string): Promise<void> {
    if (this.#abort) return;
    const abort = new AbortController();
    this.#abort = abort;
    const history = toHistory(this.#messages, text);
    const question: Message = { id: (this.#lastId += 1), role: 'user', text, tools: [], state: 'complete' };
    let answer: Message = { id: (this.#lastId += 1), role: 'assistant', text: '', tools: [], state: 'streaming' };
    this.#replace([...this.#messages, question, answer]);
    const show = (next: Partial<Message>) => {
      answer = { ...answer, ...next };
      this.#update(answer);
    };
    try {
      for await (const piece of readAnswer(this.agentId, history, abort.signal)) {
        show(typeof piece === 'string' ? { text: answer.text + piece } : { tools: addToolUse(answer.tools, piece) });
      }
      if (!answer.text) throw new MalformedAnswer(true);
      show({ state: 'complete' });
    } catch (error) {
      show(abort.signal.aborted ? { state: 'stopped' } : { state: 'failed', error });
    } finally {
      this.#abort = null;
      this.#notify();
    }
  }

  #update(answer: Message): void {
    if (this.#messages.some(({ id }) => id === answer.id)) {
      this.#messages = this.#messages.map((one) => (one.id === answer.id ? answer : one));
      this.#frame ||= requestAnimationFrame(() => this.#notify()); // tokens come faster than frames
    }
  }

  #replace(messages: readonly Message[]): void {
    this.#messages = messages;
    this.#notify();
  }

  #notify(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    for (const watcher of this.#watchers) watcher();
  }
}

/** Return what the agent is sent: its HTTP API is stateless, so each request has the whole conversation. */
export function toHistory(messages: readonly Message[], text: string): readonly { role: string; content: string }[] {
  const answered = messages.filter((one, index) => {
    const answer = one.role === 'user' ? messages[index + 1] : one;
    return answer !== undefined && answer.text !== '';
  });
  return [...answered.map(({ role, text: content }) => ({ role, content })), { role: 'user', content: text }];
}

/** Return the text of one chunk of a chat completion; null at the end. Raises ApiError for an error in the stream. */
export function parseChunk(data: string): string | null {
  if (data === '[DONE]') return null;
  let chunk: { error?: { message?: unknown } | string; choices?: { delta?: { content?: unknown } }[] };
  try {
    chunk = JSON.parse(data) as typeof chunk;
  } catch {
    throw new MalformedAnswer(false);
  }
  if (typeof chunk !== 'object' || chunk === null) throw new MalformedAnswer(false);
  if (chunk.error) {
    const message = typeof chunk.error === 'string' ? chunk.error : chunk.error.message;
    throw new ApiError(typeof message === 'string' ? message : '', 502);
  }
  const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
  return choices.map((choice) => (typeof choice?.delta?.content === 'string' ? choice.delta.content : '')).join('');
}

/** Return what Hermes tells of a tool; null for anything else. */
export function parseToolUse(data: string): ToolUse | null {
  let told: unknown;
  try {
    told = JSON.parse(data);
  } catch {
    return null;
  }
  const { toolCallId: id, tool: name, label, status } = Object(told) as Record<string, unknown>;
  if (typeof id !== 'string' || typeof name !== 'string') return null;
  return { id, name: cut(name, 100), detail: typeof label === 'string' ? cut(label, 4000) : '', isDone: status === 'completed' };
}

/** Return the list with a new tool, or with the new state of one that it has. */
export function addToolUse(uses: readonly ToolUse[], use: ToolUse): readonly ToolUse[] {
  if (!uses.some(({ id }) => id === use.id)) return uses.length < MAX_TOOLS ? [...uses, use] : uses;
  return uses.map((one) => (one.id === use.id ? { ...one, detail: use.detail || one.detail, isDone: use.isDone } : one));
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)} ...` : text);

async function* readAnswer(agentId: string, messages: unknown, signal: AbortSignal): AsyncGenerator<string | ToolUse> {
  const response = await sendTo(`/v0/agents/${encodeURIComponent(agentId)}/chat`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ messages }),
    signal,
  });
  if (!response.body) throw new MalformedAnswer(true);
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (next.value.event === TOOL_EVENT) {
      const use = parseToolUse(next.value.data);
      if (use) yield use;
      continue;
    }
    const text = parseChunk(next.value.data);
    if (text === null) return;
    if (text) yield text;
  }
}

const conversations = new Map<string, Conversation>();

export function conversationWith(agentId: string): Conversation {
  let found = conversations.get(agentId);
  if (!found) conversations.set(agentId, (found = new Conversation(agentId)));
  return found;
}

/** Forget all conversations, when the session ends. */
export function forgetConversations(): void {
  for (const conversation of conversations.values()) conversation.stop();
  conversations.clear();
}
