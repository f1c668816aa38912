import { describe, expect, it } from 'vitest';

import { readError } from './errors';

const respond = (body: string, headers: Record<string, string> = {}) => new Response(body, { status: 429, headers });

describe('readError', () => {
  it.each([
    ['{"error": "Too many"}', 'Too many'],
    ['{"error": {"code": 429, "message": "Too many"}}', 'Too many'],
    ['{"error": {"reason": "LIMITED", "details": "Too many"}}', 'Too many'],
    ['<html>', '429'],
    ['[1]', '429'],
    ['null', '429'],
  ])('finds the message of %s', async (body, message) => {
    expect((await readError(respond(body))).message).toBe(message);
  });

  it('finds the faults of a template', async () => {
    const faults =
      '{"error": "Invalid template", "errors": [{"path": "a.b", "message": "is wrong"}, {"path": "c", "message": "lacks"}]}';
    expect((await readError(respond(faults))).detail).toBe('a.b: is wrong\nc: lacks');
    expect((await readError(respond('{"error": "x", "errors": [null, 1]}'))).message).toBe('x');
  });

  it('keeps the request id and the time to wait', async () => {
    const error = await readError(respond('{}', { 'x-request-id': 'abc', 'retry-after': '7' }));
    expect([error.status, error.requestId, error.retryAfterSeconds]).toEqual([429, 'abc', 7]);
  });

  it('finds the code and the field at fault', async () => {
    const error = await readError(respond('{}', { 'x-error-code': 'invalid_routes', 'x-error-field': 'mappings.0.port' }));
    expect([error.code, error.field]).toEqual(['invalid_routes', 'mappings.0.port']);
    expect((await readError(respond('{}'))).code).toBeNull();
  });
});
