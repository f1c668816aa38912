import { expect, test } from 'vitest';

import { isRestorableTask, toNewTask, type Task } from './tasks';

const TASK = {
  id: '1',
  jobId: '1',
  name: 'Report',
  description: null,
  enabled: false,
  running: false,
  schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin', at: null },
  payload: { kind: 'agentTurn', message: 'Summarise', model: null },
  delivery: { mode: 'none', channel: null },
  sessionTarget: 'isolated',
  wakeMode: 'now',
} as unknown as Task;

test('a deleted task is made again as it was', () => {
  expect(toNewTask(TASK)).toEqual({
    name: 'Report',
    description: null,
    enabled: false,
    schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin' },
    payload: { kind: 'agentTurn', message: 'Summarise' },
    delivery: { mode: 'none' },
    sessionTarget: 'isolated',
    wakeMode: 'now',
  });
});

test('a task whose time is over cannot be made again', () => {
  expect(isRestorableTask(TASK)).toBe(true);
  const once = { ...TASK, schedule: { kind: 'at', at: '2026-01-01T00:00:00Z' } };
  expect(isRestorableTask(once, Date.parse('2025-12-31T23:59:59Z'))).toBe(true);
  expect(isRestorableTask(once, Date.parse('2026-01-01T00:00:00Z'))).toBe(false);
  expect(isRestorableTask({ ...TASK, payload: null })).toBe(false);
});
