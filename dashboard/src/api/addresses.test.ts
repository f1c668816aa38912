import { expect, test } from 'vitest';

import { findRefusedField, parsePort, subdomainSuffix } from './addresses';

test('a port is a number of up to five digits', () => {
  expect(parsePort(' 3000 ')).toBe(3000);
  for (const text of ['', '3e3', '-1', '300000', '0x10']) expect(parsePort(text)).toBeNull();
});

test('a refusal is shown at the row that its field is in', () => {
  expect(findRefusedField('mappings.2.pathPrefix')).toEqual({ row: 2, field: 'path' });
  expect(findRefusedField('mappings.10.port')).toEqual({ row: 10, field: 'port' });
  for (const field of [null, '', 'mappings', 'mappings.x.port', 'mappings.1.protected', 'targetPort'])
    expect(findRefusedField(field)).toBeNull();
});

test('subdomains are below the domain of the server', () => {
  expect(subdomainSuffix('http://abc.agents.localhost:8642', 'abc')).toBe('.agents.localhost');
  expect(subdomainSuffix('http://localhost:9001', 'abc')).toBeNull();
});
