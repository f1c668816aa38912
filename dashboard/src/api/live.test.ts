import { expect, it } from 'vitest';

import { staleKeys } from './live';

it('finds the queries that an event makes stale', () => {
  const event = { type: 'agent.changed', subject: { kind: 'agent', id: 'a' }, agentId: 'a', data: {} };
  expect(staleKeys(event)).toEqual([['agents']]);
  expect(staleKeys({ ...event, type: 'task.run', subject: { kind: 'task', id: 't' } })).toEqual([['tasks'], ['agents', 'a']]);
  const said = { ...event, type: 'conversation.changed', subject: { kind: 'conversation', id: 'c' } };
  expect(staleKeys({ ...said, data: { state: 'answering' } })).toEqual([]);
  expect(staleKeys({ ...said, data: { state: 'complete' } })).toEqual([['agents', 'a', 'conversations']]);
  expect(staleKeys({ ...event, type: 'reset' })).toEqual([[]]);
});
