import { expect, it } from 'vitest';

import type { ServerEvent } from '../../api/live';
import { isFailure, linkOf } from './links';

function event(type: string, agentId: string | null = null, data: Record<string, unknown> = {}): ServerEvent {
  return { id: '1', type, at: '', subject: { kind: 'x', id: 'subject' }, agentId, actor: null, data };
}

it('leads to the page of the subject', () => {
  expect(linkOf(event('agent.changed', 'subject'))).toEqual({ to: '/agents/$id/overview', params: { id: 'subject' } });
  expect(linkOf(event('conversation.changed', 'ada'))).toEqual({ to: '/agents/$id/chat', params: { id: 'ada' } });
  expect(linkOf(event('task.run', 'ada'))).toEqual({ to: '/agents/$id/tasks', params: { id: 'ada' } });
  expect(linkOf(event('file.added', null, { network: 'public' }))).toEqual({ to: '/storage/files', search: { network: 'public' } });
  expect(linkOf(event('domain.changed', 'ada'))).toEqual({ to: '/agents/$id/routes', params: { id: 'ada' } });
  expect(linkOf(event('domain.changed'))).toEqual({ to: '/storage/gateways' });
  expect(linkOf(event('skill.changed', 'ada'))).toEqual({ to: '/agents/$id/skills', params: { id: 'ada' } });
  expect(linkOf(event('secret.changed'))).toEqual({ to: '/secrets' });
  expect(linkOf(event('operation.changed', 'ada'))).toEqual({ to: '/agents/$id/overview', params: { id: 'ada' } });
});

it('leads nowhere from what is gone', () => {
  expect(linkOf(event('agent.deleted', 'subject'))).toBeNull();
  expect(linkOf(event('operation.changed'))).toBeNull();
});

it('knows a failure', () => {
  expect(isFailure(event('operation.changed', null, { state: 'failed' }))).toBe(true);
  expect(isFailure(event('agent.changed'))).toBe(false);
});
