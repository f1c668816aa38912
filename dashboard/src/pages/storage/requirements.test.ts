import { describe, expect, it } from 'vitest';

import { requirementDraft, NEW_DRAFT, readDraft } from './requirements';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const cent = { network: 'base', asset: USDC, pay_to: '0x2096', amount: '10000', description: 'One cent' };
const other = { network: 'eip155:137', asset: '0xabc', pay_to: '0x2096', amount: '7', description: '' };

describe('a way to pay', () => {
  it.each([cent, other])('stays the same when it is edited: %o', (requirement) => {
    expect(readDraft(requirementDraft(requirement))).toEqual(requirement);
  });

  it('is typed in USDC where that is the token', () => {
    expect(requirementDraft(cent)).toMatchObject({ choice: 'base', amount: '0.01' });
    expect(requirementDraft({ ...cent, network: 'eip155:8453' })).toMatchObject({ choice: 'other', amount: '10000' });
    expect(readDraft({ ...NEW_DRAFT, amount: '0.01', payTo: ' 0x2096 ' })).toEqual({ ...cent, description: '' });
  });

  it('is incomplete without an address or a right amount', () => {
    expect(readDraft(NEW_DRAFT)).toBeNull();
    expect(readDraft({ ...NEW_DRAFT, amount: '0.01' })).toBeNull();
    expect(readDraft({ ...NEW_DRAFT, amount: 'much', payTo: '0x2096' })).toBeNull();
    expect(readDraft({ ...requirementDraft(other), amount: '0.5' })).toBeNull();
    expect(readDraft({ ...requirementDraft(other), asset: '' })).toBeNull();
  });
});
