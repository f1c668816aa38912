import { expect, test } from 'vitest';

import { configLanguage, locateProblems } from './configProblems';

const JSON5 = `{
  // the agents
  agents: {
    list: [
      { id: "a" },
      { id: "b", 'gpt-4.1': { size: 1 } },
    ],
  },
  "x": 1,
}`;
const YAML = `# settings
model:
  name: a
tools:
  - web
  - name: shell
    timeout: x
`;

const linesOf = async (text: string, output: string) => (await locateProblems(text, output)).marked.map(({ line }) => line);

test('a configuration is JSON with comments, or YAML', () => {
  expect(configLanguage(' // c\n{}')).toBe('json');
  expect(configLanguage('{"a": 1}')).toBe('json');
  expect(configLanguage(YAML)).toBe('yaml');
});

test('a problem is at the line of its path', async () => {
  const output = 'agents.list.1.id: Invalid input\nagents.list[1].gpt-4.1.size: Too large\nx: expected str';
  expect(await locateProblems(JSON5, output)).toEqual({
    marked: [
      { line: 6, message: 'Invalid input' },
      { line: 6, message: 'Too large' },
      { line: 9, message: 'expected str' },
    ],
    others: [],
  });
  expect(await linesOf(YAML, 'model.name: no\ntools.0: no\ntools.1.timeout: no')).toEqual([3, 5, 7]);
});

test('what is missing is marked at what it is missing in, with its path', async () => {
  expect(await locateProblems(YAML, 'model.size: Required')).toEqual({
    marked: [{ line: 2, message: 'model.size: Required' }],
    others: [],
  });
});

test('a problem without a line is listed and marks none', async () => {
  expect(await locateProblems(JSON5, '<root>: expected an object\nnothing: wrong')).toEqual({
    marked: [],
    others: ['<root>: expected an object', 'nothing: wrong'],
  });
});

test('broken syntax is marked where it breaks', async () => {
  expect(await linesOf('{\n  "a": 1,\n  "b": ]\n}', 'Not a JSON5 object')).toEqual([3]);
  expect(await linesOf('{\n  no json', 'Not JSON')).toEqual([2]);
  expect(await linesOf('a: 1\nb: [1\nc: 2\n', 'expected "," or "]" in line 3')).toEqual([3]);
  expect(await linesOf('', 'line 99 is wrong')).toEqual([]);
});
