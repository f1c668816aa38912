import { expect, test } from 'vitest';

import { en } from '../../../i18n/tasks.en';
import { describeSchedule, toSchedule } from './schedule';

test('a preset is a cron expression in the time zone of the reader', () => {
  expect(toSchedule('daily', '', 'Europe/Berlin')).toEqual({ kind: 'cron', expr: '0 8 * * *', tz: 'Europe/Berlin' });
  expect(toSchedule('custom', ' every 10m ', 'UTC')).toBe('every 10m');
});

test('schedules are read as words', () => {
  expect(describeSchedule({ kind: 'cron', expr: '0 8 * * *', tz: 'UTC' }, en, 'en')).toBe('Every day at 8:00 (UTC)');
  expect(describeSchedule({ kind: 'cron', expr: '5 4 * * *' }, en, 'en')).toBe('5 4 * * *');
  expect(describeSchedule({ kind: 'every', everyMs: 600_000 }, en, 'en')).toBe('Every 10 minutes');
  expect(describeSchedule({ kind: 'at', at: '2030-01-31T12:00:00Z' }, en, 'en')).toContain('2030');
  expect(describeSchedule(null, en, 'en')).toBe('Set by the agent');
});
