export const en = {
  title: 'Configuration',
  lead: "Settings of the agent's engine. Those of the platform cannot be changed here; secrets are left out.",
  validate: 'Check',
  validating: 'Checking ...',
  valid: 'The engine accepts this configuration.',
  invalid: 'The engine does not accept this configuration',
  marked: (count: number) => (count === 1 ? 'The place is marked below.' : `${count} places are marked below.`),
  save: 'Save',
  saving: 'Saving ...',
  saved: 'The configuration was saved. The agent runs with it.',
  discard: 'Discard changes',
  unsaved: 'Not saved',
};
