export const en = {
  title: 'Sign in to Roost',
  working: 'Signing in ...',
  keyLabel: 'API key',
  keyHint: 'The key is exchanged for a session of this browser and is not stored here.',
  keyMissing: 'Enter an API key.',
  signIn: 'Sign in',
  how: 'Without a key: this opens a signed-in page, on the machine of the server.',
  usedCode: 'A sign-in link works once and only for a short time. Make a new one, or use an API key.',
  againTitle: 'Sign in again?',
  againText: (tenant: string, role: 'owner' | 'editor' | 'viewer') =>
    `This browser is signed in for ${tenant} as ${role}. The link that you opened would replace that session.`,
  againHint: 'Use the link only if you made it or expected it.',
  keep: 'Stay signed in',
  useLink: 'Use the link',
};
