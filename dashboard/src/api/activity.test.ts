import { describe, expect, it } from 'vitest';

import { foldEvents, matchesFilter, parseStored } from './activity';
import { readActivitySearch } from './activitySearch';
import type { ServerEvent } from './live';

function event(id: number, type: string, subject = `s${id}`, agentId: string | null = null): ServerEvent {
  return {
    id: String(id),
    type,
    at: '2026-01-01T00:00:00Z',
    subject: { kind: type.split('.')[0]!, id: subject },
    agentId,
    actor: null,
    data: {},
  };
}

describe('activity', () => {
  it('is newest first, without repetition, with the last state of work', () => {
    const events = [
      event(9, 'agent.changed'),
      event(10, 'operation.changed', 'o'),
      event(8, 'operation.changed', 'o'),
      event(9, 'agent.changed'),
    ];
    expect(foldEvents(events).map(({ id }) => id)).toEqual(['10', '9']);
  });

  it('is bounded', () => {
    expect(foldEvents(Array.from({ length: 1_200 }, (_, at) => event(at, 'file.added')))).toHaveLength(1_000);
  });

  it('is filtered by kind and agent', () => {
    const added = event(1, 'task.changed', 't', 'ada');
    expect(matchesFilter(added, {})).toBe(true);
    expect(matchesFilter(added, { kind: 'task', agent: 'ada' })).toBe(true);
    expect(matchesFilter(added, { kind: 'agent' })).toBe(false);
    expect(matchesFilter(added, { agent: 'bob' })).toBe(false);
    expect(matchesFilter(event(2, 'heartbeat'), {})).toBe(false);
  });

  it('takes nothing else from an address', () => {
    expect(readActivitySearch({ kind: 'file', agent: 'ada' })).toEqual({ kind: 'file', agent: 'ada' });
    expect(readActivitySearch({ kind: 'evil', agent: 7 })).toEqual({});
  });

  it('reads stored events up to the heartbeat', () => {
    const message = `id: 3\nevent: file.added\ndata: ${JSON.stringify(event(3, 'file.added'))}\n\n`;
    expect(parseStored(message)).toMatchObject({ isComplete: false, events: [{ id: '3' }] });
    expect(parseStored(`${message}id: 3\n: heart`).isComplete).toBe(false);
    const all = parseStored(`${message}id: 3\n: heartbeat\n\n${message}`);
    expect(all).toMatchObject({ isComplete: true, events: [{ id: '3' }] });
  });
});
