import { openEvents } from './connections';
import { ApiError } from './errors';
import type { components } from './schema';

export type ToolUse = components['schemas']['ToolUseRecord'];

const MAX_TOOLS = 200;

/** What the stream of an answer tells. */
export type AnswerEvent =
  | { readonly kind: 'text'; readonly text: string; readonly replaces: boolean }
  | { readonly kind: 'tool'; readonly use: ToolUse }
  | { readonly kind: 'silence'; readonly seconds: number }
  | { readonly kind: 'end'; readonly state: 'complete' | 'stopped' | 'failed'; readonly error: string };

/** Return an event of the stream of an answer; null for anything else. Raises ApiError for an error of the stream. */
export function parseAnswerEvent(name: string | undefined, data: string): AnswerEvent | null {
  let found: unknown;
  try {
    found = JSON.parse(data);
  } catch {
    return null;
  }
  const fields = Object(found) as Record<string, unknown>;
  const text = (key: string) => (typeof fields[key] === 'string' ? fields[key] : '');
  if (name === 'error') throw new ApiError(text('error'), 502);
  if (name === 'text') return { kind: 'text', text: text('text'), replaces: fields.replaces === true };
  if (name === 'silence') return { kind: 'silence', seconds: Number(fields.seconds) || 0 };
  if (name === 'tool') return { kind: 'tool', use: found as ToolUse };
  if (name === 'end') return { kind: 'end', state: found ? (fields.state as 'complete') : 'failed', error: text('error') };
  return null;
}

/** Return the list with a new tool, or with the new state of one that it has. */
export function addToolUse(uses: readonly ToolUse[], use: ToolUse): readonly ToolUse[] {
  if (!uses.some(({ id }) => id === use.id)) return uses.length < MAX_TOOLS ? [...uses, use] : uses;
  return uses.map((one) => (one.id === use.id ? use : one));
}

/** Read the answer that is being written, from its beginning. Raises ApiError. */
export async function* readAnswer(agentId: string, conversationId: string, signal: AbortSignal): AsyncGenerator<AnswerEvent> {
  const query = new URLSearchParams({ conversationId });
  const messages = await openEvents(`/v0/agents/${encodeURIComponent(agentId)}/chat/answer?${query}`, signal);
  for await (const { event: name, data } of messages) {
    const event = parseAnswerEvent(name, data);
    if (event) yield event;
  }
}
