import { describe, expect, it } from 'vitest';

import { describeAmount, fromUnits, isUsdc, networkName, shorten, toUnits } from './amounts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

describe('amounts', () => {
  it.each([
    ['0.01', '10000'],
    ['1', '1000000'],
    ['2,5', '2500000'],
    [' 0.000001 ', '1'],
    ['123456789012345678901', '123456789012345678901000000'],
  ])('%s USDC has %s units', (amount, units) => {
    expect(toUnits(amount)).toBe(units);
  });

  it.each(['', '0', '0.0', '-1', '1e3', '0.0000001', '.5', '1.', '1.2.3', 'x'])('%s is no amount', (amount) => {
    expect(toUnits(amount)).toBeNull();
  });

  it.each(['0.01', '1', '2.5', '1234.000001'])('%s comes back', (amount) => {
    expect(fromUnits(toUnits(amount)!)).toBe(amount);
  });

  it('names USDC only where it is USDC', () => {
    expect(describeAmount({ network: 'eip155:8453', asset: USDC.toLowerCase(), amount: '10000' }, 'units', 'en')).toBe(
      '0.01\u00a0USDC',
    );
    expect(describeAmount({ network: 'base-sepolia', asset: USDC, amount: '10000' }, 'units', 'en')).toBe('10000 units');
    expect(describeAmount({ network: 'base', asset: USDC, amount: '2500000' }, 'units', 'de')).toBe('2,5\u00a0USDC');
    expect(isUsdc('polygon', USDC)).toBe(false);
  });

  it('names networks', () => {
    expect(['base', 'eip155:84532', 'eip155:1'].map(networkName)).toEqual(['base', 'base-sepolia', 'eip155:1']);
  });

  it('shortens what is long', () => {
    expect(shorten(USDC)).toBe('0x8335...2913');
    expect(shorten('0x1')).toBe('0x1');
  });
});
