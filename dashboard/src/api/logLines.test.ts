import { expect, test } from 'vitest';

import { filterLines, withoutReplay, type LogLine } from './logLines';

const line = (id: number, message: string, level: LogLine['level'] = 'INFO'): LogLine => ({
  id,
  message,
  level,
  source: 'gateway',
  timestamp: `2030-01-01T00:00:0${id}Z`,
});

test('lines that a new connection repeats are left out', () => {
  const known = [line(1, 'a'), line(2, 'b')];
  expect(withoutReplay(known, [line(2, 'b'), line(3, 'b')])).toEqual([line(3, 'b')]);
});

test('lines are filtered by level and text', () => {
  const lines = [line(1, 'ready', 'DEBUG'), line(2, 'Disk full', 'ERROR'), line(3, 'slow', 'WARN')];
  expect(filterLines(lines, 'TRACE', '')).toEqual(lines);
  expect(filterLines(lines, 'WARN', '').map(({ id }) => id)).toEqual([2, 3]);
  expect(filterLines(lines, 'TRACE', ' disk ').map(({ id }) => id)).toEqual([2]);
  expect(filterLines(lines, 'FATAL', 'gateway')).toEqual([]);
});
