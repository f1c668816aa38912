import { expect, test } from 'vitest';

import { findRefusedField, parsePort, subdomainSuffix } from './addresses';

const row = (path: string, port = '3000') => ({ path, port, isProtected: true });

test('a port is a number of up to five digits', () => {
  expect(parsePort(' 3000 ')).toBe(3000);
  for (const text of ['', '3e3', '-1', '300000', '0x10']) expect(parsePort(text)).toBeNull();
});

test('a refusal is shown at the row that it is about', () => {
  const rows = [row('/a'), row('/b c'), row('/a/'), row('/v0/x'), row('/x/../y'), row('/', '80')];
  const at = (message: string) => findRefusedField(message, rows);
  expect(at("pathPrefix must begin with / and have segments of letters, at most 200 characters, got '/b c'")).toEqual({
    row: 1,
    field: 'path',
  });
  expect(at('pathPrefix /a occurs twice')).toEqual({ row: 2, field: 'path' });
  expect(at('pathPrefix /v0 belongs to the platform')).toEqual({ row: 3, field: 'path' });
  expect(at('pathPrefix must not contain the segments . and ..')).toEqual({ row: 4, field: 'path' });
  expect(at('port must be from 1025 to 65535, got 80')).toEqual({ row: 5, field: 'port' });
  expect(findRefusedField("port 18789 is the gateway's own", [row('/', '18789')])).toEqual({ row: 0, field: 'port' });
  expect(findRefusedField('port must be from 1025 to 65535, got 0', [row('/x', 'abc')])).toEqual({ row: 0, field: 'port' });
  expect(at('An agent can have at most 10 routes, got 11')).toBeNull();
});

test('subdomains are below the domain of the server', () => {
  expect(subdomainSuffix('http://abc.agents.localhost:8642', 'abc')).toBe('.agents.localhost');
  expect(subdomainSuffix('http://localhost:9001', 'abc')).toBeNull();
});
