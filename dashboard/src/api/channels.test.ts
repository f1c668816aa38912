import { expect, test } from 'vitest';

import { channelDraft, isComplete, toConfiguration } from './channels';

test('a new channel admits those who are approved, and a stored one keeps its list', () => {
  expect(channelDraft(null)).toEqual({ botToken: '', appToken: '', access: 'pairing', allowFrom: [] });
  expect(channelDraft({ dmPolicy: 'open', allowFrom: [] }).access).toBe('open');
  expect(channelDraft({ dmPolicy: 'open', allowFrom: ['*'] }).access).toBe('open');
  expect(channelDraft({ dmPolicy: 'open', allowFrom: ['*', '4711'] })).toMatchObject({ access: 'open', allowFrom: ['4711'] });
  expect(channelDraft({ dmPolicy: 'open', allowFrom: ['4711'] })).toMatchObject({ access: 'listed', allowFrom: ['4711'] });
  expect(channelDraft({ dmPolicy: 'pairing', allowFrom: ['4711'] })).toMatchObject({ access: 'pairing', allowFrom: ['4711'] });
});

test('a list admits only those on it, and everyone needs an empty one', () => {
  const draft = { botToken: ' 1:A ', appToken: '', access: 'listed', allowFrom: ['4711'] } as const;
  expect(toConfiguration('telegram', draft, true)).toEqual({ dmPolicy: 'open', allowFrom: ['4711'], botToken: '1:A' });
  expect(toConfiguration('telegram', { ...draft, access: 'open' }, false).allowFrom).toEqual([]);
  expect(toConfiguration('whatsapp', channelDraft(null), true).botToken).toBeTruthy();
  expect(toConfiguration('whatsapp', channelDraft(null), false).botToken).toBeUndefined();
});

test('a draft needs its tokens once, and someone on its list', () => {
  const draft = { ...channelDraft(null), botToken: 'xoxb-1' };
  expect(isComplete('telegram', draft, true)).toBe(true);
  expect(isComplete('slack', draft, true)).toBe(false);
  expect(isComplete('slack', channelDraft(null), false)).toBe(true);
  expect(isComplete('whatsapp', channelDraft(null), true)).toBe(true);
  expect(isComplete('telegram', { ...draft, access: 'listed' }, true)).toBe(false);
});
