import { describe, expect, it } from 'vitest';

import { signingCall } from './wallet';

const file = { cid: 'bafk', created_at: '2026-01-02T03:04:05.678901Z' };

describe('what a wallet is asked to sign', () => {
  it('is typed data on the main network', () => {
    const { method, params } = signingCall(file, '0xabc', '0x1');
    expect([method, params[0]]).toEqual(['eth_signTypedData_v4', '0xabc']);
    expect(JSON.parse(params[1]!)).toMatchObject({
      primaryType: 'Sign',
      domain: { chainId: 1 },
      message: { address: '0xabc', cid: 'bafk', date: file.created_at },
    });
  });

  it('is the CID as a text on others', () => {
    expect(signingCall(file, '0xabc', '0x2105')).toEqual({ method: 'personal_sign', params: ['0x6261666b', '0xabc'] });
  });
});
