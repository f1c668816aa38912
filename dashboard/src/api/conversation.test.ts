import { describe, expect, it } from 'vitest';

import { ApiError } from './errors';
import { addToolUse, parseToolUse, MalformedAnswer, parseChunk, toHistory, type Message } from './conversation';

describe('parseChunk', () => {
  it('returns the text of a chunk, and null at the end', () => {
    expect(parseChunk('{"choices": [{"delta": {"content": "a"}}, {"delta": {}}]}')).toBe('a');
    expect(parseChunk('{"choices": [{"delta": {"content": {"x": 1}}}, null]}')).toBe('');
    expect(parseChunk('{}')).toBe('');
    expect(parseChunk('[DONE]')).toBeNull();
  });

  it('raises the error in a stream', () => {
    expect(() => parseChunk('{"error": {"message": "no"}}')).toThrow(ApiError);
    expect(() => parseChunk('{"error": "no"}')).toThrow('no');
  });

  it.each(['nonsense', 'null', '1'])('refuses %s', (data) => {
    expect(() => parseChunk(data)).toThrow(MalformedAnswer);
  });
});

it('sends what was answered, also by half, and the new message', () => {
  const message = (id: number, role: Message['role'], text: string): Message => ({ id, role, text, tools: [], state: 'complete' });
  const said = [
    message(1, 'user', 'first'),
    message(2, 'assistant', 'half an ans'),
    message(3, 'user', 'unanswered'),
    message(4, 'assistant', ''),
  ];
  expect(toHistory(said, 'next').map(({ content }) => content)).toEqual(['first', 'half an ans', 'next']);
});

it('tells tools from text, and shows each once', () => {
  const told = (status: string) =>
    JSON.stringify({ tool: 'terminal', label: 'ls -la', toolCallId: 'c1', status, emoji: '*' });
  const begun = parseToolUse(told('running'))!;
  expect(begun).toEqual({ id: 'c1', name: 'terminal', detail: 'ls -la', isDone: false });
  const done = parseToolUse(JSON.stringify({ tool: 'terminal', toolCallId: 'c1', status: 'completed' }))!;
  expect(addToolUse(addToolUse([], begun), done)).toEqual([{ ...begun, isDone: true }]);
  for (const hostile of ['', '[]', 'null', '{"tool": 1, "toolCallId": "c"}']) expect(parseToolUse(hostile)).toBeNull();
  expect(parseToolUse(JSON.stringify({ tool: 'x'.repeat(1000), toolCallId: 'c' }))!.name.length).toBeLessThan(110);
});
